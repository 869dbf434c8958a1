package actors

import "github.com/tasard/tasard/engine"

// pageRowsMax bounds what one cache keeps, in rows: a row, encoded, is about 1 KiB, and a page costs some
// rows by itself. Two generations of it are kept at most.
const (
	pageRowsMax  = 4096
	pageRowsBase = 4
)

// pageCache keeps the pages that were cut from one state, so that the same question gets the same page, with
// what the front end made of it. It is bounded by generations: when the young one is full it becomes the
// old one. Nothing is moved or counted at a hit.
type pageCache[K comparable, T any] struct {
	recent, previous map[K]*engine.Page[T]
	rows             int // in young
}

// of is the page that was cut for a question, or a new one that cut makes. The old generation goes when the young one is full.
func (c *pageCache[K, T]) of(key K, cut func(K) *engine.Page[T]) *engine.Page[T] {
	if page, ok := c.recent[key]; ok {
		return page
	}
	page, ok := c.previous[key]
	if ok {
		return page
	}
	page = cut(key)
	rows := len(page.Items) + pageRowsBase
	if c.recent == nil || c.rows+rows > pageRowsMax {
		c.previous, c.recent, c.rows = c.recent, map[K]*engine.Page[T]{}, 0
	}
	c.recent[key] = page
	c.rows += rows
	return page
}

// clear forgets everything: the state has changed.
func (c *pageCache[K, T]) clear() { *c = pageCache[K, T]{} }

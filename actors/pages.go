package actors

import "github.com/tasard/tasard/engine"

// pageRowsMax bounds what one cache keeps, in rows: a row, encoded, is about 1 KiB, and a page costs some
// rows by itself. Two generations of it are kept at most.
const (
	pageRowsMax  = 4096
	pageRowsBase = 4
)

// pages keeps the pages that were cut from one state, so that the same question gets the same page, with
// what the front end made of it. It is bounded by generations: when the young one is full it becomes the
// old one. Nothing is moved or counted at a hit.
type pages[K comparable, T any] struct {
	young, old map[K]*engine.Page[T]
	rows       int // in young
}

// of is the page that was cut for a question, or a new one that cut makes. The old generation goes when the young one is full.
func (c *pages[K, T]) of(key K, cut func(K) *engine.Page[T]) *engine.Page[T] {
	if page, ok := c.young[key]; ok {
		return page
	}
	page, ok := c.old[key]
	if ok {
		return page
	}
	page = cut(key)
	rows := len(page.Items) + pageRowsBase
	if c.young == nil || c.rows+rows > pageRowsMax {
		c.old, c.young, c.rows = c.young, map[K]*engine.Page[T]{}, 0
	}
	c.young[key] = page
	c.rows += rows
	return page
}

// drop forgets everything: the state has changed.
func (c *pages[K, T]) drop() { *c = pages[K, T]{} }

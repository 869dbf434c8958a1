package actors

import "github.com/tasard/tasard/engine"

// pageRowsMax bounds what one cache keeps, in rows: a row, encoded, is about 1 KiB, and a page costs some
// rows by itself. Two generations of it are kept at most.
const (
	pageRowsMax  = 4096
	pageRowsBase = 4
)

// pageCache keeps the pages that were made of one state, so that the same question gets the same page, with what the front end made of
// it. It has two generations: when the recent one is full it becomes the previous one. Nothing is moved or counted at a hit.
type pageCache[K comparable, T any] struct {
	recent, previous map[K]*engine.Page[T]
	rows             int // in recent
}

// of returns the page for a question, which make makes when there is none.
func (c *pageCache[K, T]) of(key K, make func(K) *engine.Page[T]) *engine.Page[T] {
	page := c.get(key)
	if page == nil {
		page = make(key)
		c.put(key, page)
	}
	return page
}

// get returns the page for a question, nil when there is none.
func (c *pageCache[K, T]) get(key K) *engine.Page[T] {
	if page, ok := c.recent[key]; ok {
		return page
	}
	return c.previous[key]
}

// put keeps a page. The previous generation goes when the recent one is full.
func (c *pageCache[K, T]) put(key K, page *engine.Page[T]) {
	rows := len(page.Items) + pageRowsBase
	if c.recent == nil || c.rows+rows > pageRowsMax {
		c.previous, c.recent, c.rows = c.recent, map[K]*engine.Page[T]{}, 0
	}
	c.recent[key] = page
	c.rows += rows
}

// clear forgets everything: the state has changed.
func (c *pageCache[K, T]) clear() { *c = pageCache[K, T]{} }

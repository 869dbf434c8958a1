package actors

import "github.com/tasard/tasard/engine"

// pageRowsMax bounds a generation of a cache, in rows of about 1 KiB encoded; a page counts pageRowsBase rows more.
const (
	pageRowsMax  = 4096
	pageRowsBase = 4
)

// pageCache keeps pages that were made from one state, so that the same question gets the same page, with its rendered
// answers. When the recent generation is full it becomes the previous one. A hit moves and counts nothing.
type pageCache[K comparable, T any] struct {
	recent, previous map[K]*engine.Page[T]
	rows             int // in recent
}

// of returns the page for a question. It calls make if there is none.
func (c *pageCache[K, T]) of(key K, make func(K) *engine.Page[T]) *engine.Page[T] {
	page := c.get(key)
	if page == nil {
		page = make(key)
		c.put(key, page)
	}
	return page
}

// get returns the page for a question, or nil.
func (c *pageCache[K, T]) get(key K) *engine.Page[T] {
	if page, ok := c.recent[key]; ok {
		return page
	}
	return c.previous[key]
}

// put adds a page. If the recent generation is full, the previous one is dropped.
func (c *pageCache[K, T]) put(key K, page *engine.Page[T]) {
	rows := len(page.Items) + pageRowsBase
	if c.recent == nil || c.rows+rows > pageRowsMax {
		c.previous, c.recent, c.rows = c.recent, map[K]*engine.Page[T]{}, 0
	}
	c.recent[key] = page
	c.rows += rows
}

// clear drops all pages.
func (c *pageCache[K, T]) clear() { *c = pageCache[K, T]{} }

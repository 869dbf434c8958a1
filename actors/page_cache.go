package actors

import "github.com/tasard/tasard/engine"

// pageRowsMax is the maximum number of rows in a generation of a cache. A row has about 1 KiB when encoded. Each page
// counts as pageRowsBase additional rows.
const (
	pageRowsMax  = 4096
	pageRowsBase = 4
)

// pageCache keeps pages of one state by query, so that equal queries get the same page and its rendered responses. When
// the recent generation is full, it replaces the previous one. A cache hit changes nothing.
type pageCache[K comparable, T any] struct {
	recent, previous map[K]*engine.Page[T]
	rows             int // in recent
}

// of returns the page for a query. It calls make if the cache has none.
func (c *pageCache[K, T]) of(key K, make func(K) *engine.Page[T]) *engine.Page[T] {
	page := c.get(key)
	if page == nil {
		page = make(key)
		c.put(key, page)
	}
	return page
}

// get returns the page for a query, or nil.
func (c *pageCache[K, T]) get(key K) *engine.Page[T] {
	if page, ok := c.recent[key]; ok {
		return page
	}
	return c.previous[key]
}

// put adds a page. If the recent generation is full, it evicts the previous one.
func (c *pageCache[K, T]) put(key K, page *engine.Page[T]) {
	rows := len(page.Items) + pageRowsBase
	if c.recent == nil || c.rows+rows > pageRowsMax {
		c.previous, c.recent, c.rows = c.recent, map[K]*engine.Page[T]{}, 0
	}
	c.recent[key] = page
	c.rows += rows
}

// clear removes all pages.
func (c *pageCache[K, T]) clear() { *c = pageCache[K, T]{} }

package actors

import "github.com/tasard/tasard/engine"

const (
	pageRowsMax  = 4096 // maximum number of rows in pageCache.recent; a row has about 1 KiB when encoded
	pageRowsBase = 4    // added to the number of rows of each page, for the page itself
)

// pageCache keeps the pages that were made from one state, by query. A page also keeps its rendered responses, so the
// responses to equal queries are rendered once. A cache has two generations of pages, recent and previous. When recent
// is full, put drops previous, and recent becomes previous. A hit does not move a page between the generations.
type pageCache[K comparable, T any] struct {
	recent, previous map[K]*engine.Page[T]
	rows             int // number of rows in recent, plus pageRowsBase for each page
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

// put adds a page to recent.
func (c *pageCache[K, T]) put(key K, page *engine.Page[T]) {
	rows := len(page.Items) + pageRowsBase
	if c.recent == nil || c.rows+rows > pageRowsMax {
		c.previous, c.recent, c.rows = c.recent, map[K]*engine.Page[T]{}, 0
	}
	c.recent[key] = page
	c.rows += rows
}

func (c *pageCache[K, T]) clear() { *c = pageCache[K, T]{} }

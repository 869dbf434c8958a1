package actors

// pageRowsMax bounds what one cache keeps, in rows: a row, encoded, is about 1 KiB, and a page costs some
// rows by itself. Two generations of it are kept at most.
const (
	pageRowsMax  = 4096
	pageRowsBase = 4
)

// pages keeps the pages that were cut from one state, so that the same question gets the same page, with
// what the front end made of it. It is bounded by generations: when the young one is full it becomes the
// old one, and what is asked for again moves back. Nothing is moved or counted at a hit.
type pages[K comparable, P any] struct {
	young, old map[K]P
	rows       int // in young
}

func (c *pages[K, P]) get(key K) (P, bool) {
	if page, ok := c.young[key]; ok {
		return page, true
	}
	page, ok := c.old[key]
	return page, ok
}

// put keeps a page. The old generation goes when the young one is full.
func (c *pages[K, P]) put(key K, page P, rows int) {
	rows += pageRowsBase
	if c.young == nil || c.rows+rows > pageRowsMax {
		c.old, c.young, c.rows = c.young, map[K]P{}, 0
	}
	c.young[key] = page
	c.rows += rows
}

// drop forgets everything: the state has changed.
func (c *pages[K, P]) drop() {
	c.young, c.old, c.rows = nil, nil, 0
}

package pages

import (
	"sync"
	"time"
)

// generationCache is a bounded cache of recently used values. It has two generations. When the young generation is
// full, it becomes the old generation, and the previous old generation is dropped. get moves a value to the young
// generation. The cache is safe for concurrent use, but its values are not.
type generationCache[K comparable, V any] struct {
	youngMax   int // largest size of the young generation
	mu         sync.Mutex
	young, old map[K]*V
}

// get returns the value of a key. If there is none, it adds a zero value.
func (g *generationCache[K, V]) get(key K) *V {
	g.mu.Lock()
	defer g.mu.Unlock()
	value, ok := g.young[key]
	if ok {
		return value
	}
	if value, ok = g.old[key]; !ok {
		value = new(V)
	}
	if g.young == nil || len(g.young) >= g.youngMax {
		g.old, g.young = g.young, map[K]*V{}
	}
	g.young[key] = value
	return value
}

// drop removes a value, unless the key has another value by now.
func (g *generationCache[K, V]) drop(key K, value *V) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, generation := range []map[K]*V{g.young, g.old} {
		if generation[key] == value {
			delete(generation, key)
		}
	}
}

// rotate makes the young generation the old generation, and drops the previous old one.
func (g *generationCache[K, V]) rotate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.old, g.young = g.young, nil
}

// Limits of one generation of cached pages: their number, and their size in bytes.
const (
	cachedPagesMax = 256
	cachedBytesMax = 8 << 20
)

// cacheKey identifies a cached page.
type cacheKey struct {
	language Language
	suggest  bool // the page has a link to the other language at the top (Request.suggestsOther)
	page     string
	query    string // normalized URL query
}

// pageCache holds rendered pages until they expire.
type pageCache struct {
	pages generationCache[cacheKey, cacheEntry]
	mu    sync.Mutex
	bytes int // size of the pages that were rendered since the last rotate
}

func newPageCache() *pageCache {
	return &pageCache{pages: generationCache[cacheKey, cacheEntry]{youngMax: cachedPagesMax}}
}

// cacheEntry has one page. mu is locked while the page is rendered, so that concurrent requests render it once.
type cacheEntry struct {
	mu         sync.Mutex
	page       *rendered
	renderedAt time.Time // if the present time is before renderedAt, the clock was set back and the page is invalid
	expires    time.Time
}

// getOrRender returns the cached page of a key. If the page is missing or has expired, it calls render, which also
// returns when the page expires, and caches the result. It does not cache errors.
func (c *pageCache) getOrRender(key cacheKey, now time.Time, render func() (*rendered, time.Time, error)) (*rendered, error) {
	entry := c.pages.get(key)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if entry.page != nil && !now.Before(entry.renderedAt) && now.Before(entry.expires) {
		return entry.page, nil
	}
	page, expires, err := render()
	if err != nil {
		c.pages.drop(key, entry)
		return nil, err
	}
	c.addBytes(len(page.body))
	entry.page, entry.renderedAt, entry.expires = page, now, expires
	return page, nil
}

func (c *pageCache) addBytes(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += bytes; c.bytes > cachedBytesMax {
		c.bytes = 0
		c.pages.rotate()
	}
}

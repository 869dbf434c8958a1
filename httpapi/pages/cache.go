package pages

import (
	"sync"
	"time"
)

// generationCache keep what was used lately, a bounded number of it: when the young generation is full it becomes the old one, and what was
// in that and has not been asked for since is dropped. Safe for concurrent use; the values are not.
type generationCache[K comparable, V any] struct {
	youngMax   int // in the young one
	mu         sync.Mutex
	young, old map[K]*V
}

// get is the value of a key, an empty one when it has none.
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

// drop forgets a value.
func (g *generationCache[K, V]) drop(key K, value *V) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, all := range []map[K]*V{g.young, g.old} {
		if all[key] == value {
			delete(all, key)
		}
	}
}

// rotate makes the young generation the old one.
func (g *generationCache[K, V]) rotate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.old, g.young = g.young, nil
}

// Bounds of the pages that are kept in one generation.
const (
	cachedPagesMax = 256
	cachedBytesMax = 8 << 20
)

// cacheKey names one form of one page.
type cacheKey struct {
	language Language
	suggest  bool // the other language is suggested
	page     string
	query    string // normalised by the page: only what it knows, in one order
}

// cache is what was rendered, for those who ask the same before it is outdated.
type pageCache struct {
	pages generationCache[cacheKey, cacheEntry]
	mu    sync.Mutex
	bytes int // since the generation began; a page that is rendered anew counts again: generations pass the sooner
}

func newPageCache() *pageCache {
	return &pageCache{pages: generationCache[cacheKey, cacheEntry]{youngMax: cachedPagesMax}}
}

// cacheEntry is where one page is kept. Its lock is held while it is rendered, so that many who ask at once cost one rendering.
type cacheEntry struct {
	mu          sync.Mutex
	page        *rendered
	from, until time.Time // from: a clock that is set back must not keep it for longer
}

// getOrRender is the page of a key, made when it is not there or outdated. What can't be made is not kept.
func (k *pageCache) getOrRender(key cacheKey, now time.Time, render func() (*rendered, time.Time, error)) (*rendered, error) {
	p := k.pages.get(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page != nil && !now.Before(p.from) && now.Before(p.until) {
		return p.page, nil
	}
	page, until, err := render()
	if err != nil {
		k.pages.drop(key, p)
		return nil, err
	}
	k.addBytes(len(page.body))
	p.page, p.from, p.until = page, now, until
	return page, nil
}

func (k *pageCache) addBytes(bytes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bytes += bytes; k.bytes > cachedBytesMax {
		k.bytes = 0
		k.pages.rotate()
	}
}

// renderLimiter bounds how many pages are rendered in a second, whoever asks: what is kept is answered all the same, and the API has its
// processors.
type renderLimiter struct {
	mu     sync.Mutex
	second int64
	count  int
}

func (p *renderLimiter) allow(now time.Time, perSecond int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if second := now.Unix(); second != p.second {
		p.second, p.count = second, 0
	}
	p.count++
	return p.count <= perSecond
}

package pages

import (
	"sync"
	"time"
)

// generations keep what was used lately, a bounded number of it: when the young generation is full it becomes the old one, and what was
// in that and has not been asked for since is dropped. Safe for concurrent use; the values are not.
type generations[K comparable, V any] struct {
	most       int // in the young one
	mu         sync.Mutex
	young, old map[K]*V
}

// of is the value of a key, an empty one when it has none.
func (g *generations[K, V]) of(key K) *V {
	g.mu.Lock()
	defer g.mu.Unlock()
	value, ok := g.young[key]
	if ok {
		return value
	}
	if value, ok = g.old[key]; !ok {
		value = new(V)
	}
	if g.young == nil || len(g.young) >= g.most {
		g.old, g.young = g.young, map[K]*V{}
	}
	g.young[key] = value
	return value
}

// drop forgets a value.
func (g *generations[K, V]) drop(key K, value *V) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, all := range []map[K]*V{g.young, g.old} {
		if all[key] == value {
			delete(all, key)
		}
	}
}

// age makes the young generation the old one.
func (g *generations[K, V]) age() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.old, g.young = g.young, nil
}

// Bounds of the pages that are kept in one generation.
const (
	keptPagesMax = 256
	keptBytesMax = 8 << 20
)

// keptKey names one form of one page.
type keptKey struct {
	language Language
	suggest  bool // the other language is suggested
	page     string
	query    string // normalised by the page: only what it knows, in one order
}

// kept is what was rendered, for those who ask the same before it is outdated.
type kept struct {
	pages generations[keptKey, place]
	mu    sync.Mutex
	bytes int // since the generation began; a page that is rendered anew counts again: generations pass the sooner
}

func newKept() *kept { return &kept{pages: generations[keptKey, place]{most: keptPagesMax}} }

// place is where one page is kept. Its lock is held while it is rendered, so that many who ask at once cost one rendering.
type place struct {
	mu          sync.Mutex
	page        *rendered
	from, until time.Time // from: a clock that is set back must not keep it for longer
}

// take is the page of a key, made when it is not there or outdated. What can't be made is not kept.
func (k *kept) take(key keptKey, now time.Time, render func() (*rendered, time.Time, error)) (*rendered, error) {
	p := k.pages.of(key)
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
	k.weigh(len(page.body))
	p.page, p.from, p.until = page, now, until
	return page, nil
}

func (k *kept) weigh(bytes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bytes += bytes; k.bytes > keptBytesMax {
		k.bytes = 0
		k.pages.age()
	}
}

// pace bounds how many pages are rendered in a second, whoever asks: what is kept is answered all the same, and the API has its
// processors.
type pace struct {
	mu     sync.Mutex
	second int64
	count  int
}

func (p *pace) allow(now time.Time, perSecond int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if second := now.Unix(); second != p.second {
		p.second, p.count = second, 0
	}
	p.count++
	return p.count <= perSecond
}

package pages

import (
	"sync"
	"time"
)

// Bounds of what is kept. There are two generations: when the young one is full it becomes the old one.
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
	mu         sync.Mutex
	young, old map[keptKey]*place
	bytes      int // in young
}

// place is where one page is kept. Its lock is held while it is rendered, so that many who ask at once cost one rendering.
type place struct {
	mu          sync.Mutex
	page        *rendered
	from, until time.Time // from: a clock that is set back must not keep it for longer
}

// take is the page of a key, made when it is not there or outdated. What can't be made is not kept.
func (k *kept) take(key keptKey, now time.Time, render func() (*rendered, time.Time, error)) (*rendered, error) {
	p := k.place(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page != nil && !now.Before(p.from) && now.Before(p.until) {
		return p.page, nil
	}
	page, until, err := render()
	if err != nil {
		k.forget(key, p)
		return nil, err
	}
	k.weigh(len(page.body))
	p.page, p.from, p.until = page, now, until
	return page, nil
}

// place is the place of a key, a new one when it has none.
func (k *kept) place(key keptKey) *place {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.young[key]
	if ok {
		return p
	}
	if p, ok = k.old[key]; !ok {
		p = &place{}
	}
	if k.young == nil || len(k.young) >= keptPagesMax || k.bytes >= keptBytesMax {
		k.old, k.young, k.bytes = k.young, map[keptKey]*place{}, 0
	}
	k.young[key] = p
	return p
}

// weigh counts what was rendered. A page that is rendered anew counts again: generations pass the sooner.
func (k *kept) weigh(bytes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bytes += bytes
}

func (k *kept) forget(key keptKey, p *place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.young[key] == p {
		delete(k.young, key)
	}
	if k.old[key] == p {
		delete(k.old, key)
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

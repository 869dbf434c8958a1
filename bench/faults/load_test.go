//go:build faults

package faults

import (
	"math/rand/v2"
	"sync"
)

// client is one caller of a node or of a cluster under load.
type client struct {
	*ledger
	c      *caller
	chance *rand.Rand
	up     func() []*member // the nodes that are up, in any order
	own    []*account       // whose keys it changes

	glances sync.Mutex // while it asks several nodes at once
	seen    map[*member]*glance
}

func newClient(l *ledger, c *caller, chance *rand.Rand, up func() []*member, own []*account) *client {
	return &client{ledger: l, c: c, chance: chance, up: up, own: own, seen: map[*member]*glance{}}
}

// some is any node that is up, nil when there is none.
func (w *client) some() *member {
	for _, m := range w.up() {
		return m
	}
	return nil
}

// pick is pick of an account, under the lock.
func (w *client) pick(a *account) (good, loose, gone *ledgerKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return a.pick(w.chance)
}

// read asks a node for a rate, mostly with a key of an account, of some requests in a hundred with one that was revoked or with none.
func (w *client) read(a *account, goneKeys, without int) {
	m := w.some()
	if m == nil {
		return
	}
	good, _, gone := w.pick(a)
	switch dice := w.chance.IntN(100); {
	case dice < without:
		good = nil
	case dice < without+goneKeys, good == nil:
		good = gone
	}
	if good != nil || without > 0 {
		w.askAny(m, a, good)
	}
}

// askAny asks a node for any rate, with a key or, if that is nil, without.
func (w *client) askAny(m *member, a *account, k *ledgerKey) {
	w.glances.Lock()
	if w.seen[m] == nil {
		w.seen[m] = newGlance()
	}
	r := request{key: k, want: w.series[w.chance.IntN(len(w.series))], at: m, seen: w.seen[m]}
	w.glances.Unlock()
	if k != nil {
		r.by = a
	}
	w.ask(w.c, r)
}

// forge makes keys of an own account, now and then on all nodes at once, and revokes some.
func (w *client) forge() {
	m, a := w.some(), w.own[w.chance.IntN(len(w.own))]
	if m == nil {
		return
	}
	good, loose, _ := w.pick(a)
	switch dice := w.chance.IntN(4); {
	case dice == 0:
		rush(w.up(), func(m *member) { w.newKey(w.c, m, a) })
	case dice == 1 || good == nil && loose == nil:
		w.newKey(w.c, m, a)
		w.adopt(w.c, m, a)
	case loose != nil:
		w.endKey(w.c, m, a, loose)
	default:
		w.endKey(w.c, m, a, good)
		rush(w.up(), func(m *member) { w.askAny(m, a, good) }) // how long is it good for elsewhere?
	}
}

// rush has several nodes asked the same at once.
func rush(members []*member, do func(m *member)) {
	spread(len(members), members, func(_ int, m *member) { do(m) })
}

//go:build faults

package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
)

// enrol signs an account up at one node and sets its limits through another one.
func (l *fleetLedger) enrol(c *caller, p, other *peer, day, minute int) error {
	h := &holder{email: fmt.Sprintf("holder-%d@example.com", len(l.holders)), day: day, minute: minute, days: map[engine.Date]int{}}
	if err := l.signIn(c, p, h); err != nil {
		return err
	}
	path := "http://node/accounts/" + h.email + "/limit"
	var got answer
	var err error
	soon(healMax, func() bool { // the other node may not know the account yet
		got, err = other.admin.do(http.MethodPost, path, "", map[string]int{"day": day, "minute": minute})
		return err == nil && got.good()
	})
	if err != nil || !got.good() {
		return got.trouble("limit "+h.email, err)
	}
	l.holders = append(l.holders, h)
	return nil
}

// signIn gives an account a new session.
func (l *fleetLedger) signIn(c *caller, p *peer, h *holder) error {
	code, got, err := p.askCode(c, h.email)
	if code == "" {
		return got.trouble("ask a code for "+h.email, err)
	}
	token, got, err := p.openSession(c, h.email, code)
	if token == "" {
		return got.trouble("log in as "+h.email, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h.session, h.signed = token, time.Now()
	return nil
}

// newKey asks a node for a key.
func (l *fleetLedger) newKey(c *caller, p *peer, h *holder) {
	l.mu.Lock()
	k := &heldKey{name: fmt.Sprintf("key %d", len(h.keys)), made: span{from: l.now()}, outcome: unknown}
	h.keys = append(h.keys, k)
	session := h.session
	l.mu.Unlock()
	made, got, err := createKey(c, p.url, session, k.name)
	l.mu.Lock()
	defer l.mu.Unlock()
	k.made.to = l.now()
	k.outcome = l.came("keys", p, &got, err)
	k.id, k.secret = made.ID, made.Secret
}

// endKey asks a node to revoke one.
func (l *fleetLedger) endKey(c *caller, p *peer, h *holder, k *heldKey) {
	l.mu.Lock()
	if k.asked++; k.asked == 1 {
		k.ended.from = l.now()
	}
	session := h.session
	l.mu.Unlock()
	got, err := revokeKey(c, p.url, session, k.id)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch outcome := l.came("revocations", p, &got, err); {
	case outcome == refused:
		k.asked--
	case outcome == acknowledged && k.revoked == nil:
		k.revoked, k.ended.to = p, l.now()
	}
}

// adopt learns from a node the keys of an account that were made without an answer, so that they can be revoked.
func (l *fleetLedger) adopt(c *caller, p *peer, h *holder) {
	l.mu.Lock()
	session := h.session
	l.mu.Unlock()
	got, err := c.do(http.MethodGet, p.url+"/v1/account/keys", session, nil)
	var list struct{ Data []listedKey }
	if err != nil || got.into(&list) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range h.keys {
		for _, now := range list.Data {
			if now.Name == k.name && k.outcome == unknown {
				k.id = now.ID
			}
		}
	}
}

// raise lifts the limit of an account's day through a node.
func (l *fleetLedger) raise(p *peer, h *holder, by int) {
	l.mu.Lock()
	h.day += by
	day := h.day
	l.mu.Unlock()
	got, err := p.admin.do(http.MethodPost, "http://node/accounts/"+h.email+"/limit", "", map[string]int{"day": day, "minute": h.minute})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.came("limits", p, &got, err)
}

// rush has several nodes do the same at once.
func rush(peers []*peer, do func(p *peer)) {
	var done sync.WaitGroup
	for _, p := range peers {
		done.Go(func() { do(p) })
	}
	done.Wait()
}

// pick is a key that is surely active, one that may be (loose), and one that is surely revoked (gone); nil when none is found.
func (h *holder) pick(chance *rand.Rand) (good, loose, gone *heldKey) {
	if len(h.keys) == 0 {
		return nil, nil, nil
	}
	from := chance.IntN(len(h.keys))
	for i := range h.keys {
		k := h.keys[(from+i)%len(h.keys)]
		switch {
		case k.id == "":
		case k.revoked != nil:
			gone = k
		case k.asked > 0 || k.outcome != acknowledged:
			loose = k
		default:
			good = k
		}
	}
	return good, loose, gone
}

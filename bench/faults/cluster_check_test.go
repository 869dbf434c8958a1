//go:build faults

package faults

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// settle is the check at the end: all faults are over, all nodes are up, and nobody writes any more. Everything acknowledged must be on every
// node, and all nodes must be equal.
func (l *fleetLedger) settle(r *rig) {
	if !r.level() {
		l.mu.Lock()
		l.wrong(strange, "the nodes do not come to the same record")
		l.mu.Unlock()
		return
	}
	l.renew(r)
	for _, p := range r.peers {
		l.checkRates(p, "/v1/rates?currency=USD&limit=200")
		l.checkRates(p, "/v1/rates/history?currency=USD&limit=200")
		for _, h := range l.holders {
			l.checkKeys(p, h)
		}
	}
	l.compareNodes(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.holders {
		l.checkMinutes(h)
		l.checkActive(h)
	}
}

// renew gives every account whose session is old another one, and waits until all nodes know it.
func (l *fleetLedger) renew(r *rig) {
	for i, h := range l.holders {
		if time.Since(h.signed) < signedMax {
			continue
		}
		c := newCaller(r.from(500 + i))
		var err error
		if !soon(90*time.Second, func() bool { err = l.signIn(c, r.peers[i%len(r.peers)], h); return err == nil }) {
			l.mu.Lock()
			l.wrong(lost, "%v", err)
			l.mu.Unlock()
		}
		c.close()
	}
	r.level()
}

// failed notes a question of the check without a good answer.
func (l *fleetLedger) failed(p *peer, what string, got *answer, err error) {
	l.wrong(strange, "node %d: %s: %d %s, %v: %.300s", p.number, what, got.status, got.code, err, got.body)
}

// checkRates wants every value that was acknowledged, or one that may be newer, and none that was refused.
func (l *fleetLedger) checkRates(p *peer, path string) {
	c := newCaller("")
	defer c.close()
	got, err := c.do(http.MethodGet, p.url+path, "", nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	var shown page
	if err != nil || got.into(&shown) != nil {
		l.failed(p, path, &got, err)
		return
	}
	values := map[string]int{}
	for _, rate := range shown.Data {
		if number, is := numberOf(rate.Buy); is && rate.SourceID == "manual" {
			values[rate.InstitutionID] = number
		}
	}
	for _, s := range l.series {
		number := values[s.institution]
		if number > len(s.sets) {
			l.wrong(strange, "node %d shows %s of %s at the end, which nobody has set", p.number, valueOf(number), s.institution)
			continue
		}
		if number > 0 {
			s.sets[number-1].shown = true
		}
		for i, one := range s.sets {
			if one.outcome == acknowledged && s.before(number, i+1) {
				l.wrong(lost, "node %d shows %s of %s at the end, although %s was acknowledged later", p.number, valueOf(number), s.institution, valueOf(i+1))
				break
			}
			if one.outcome == refused && one.shown {
				l.wrong(strange, "%s of %s was refused by node %d and shown all the same", valueOf(i+1), s.institution, one.by.number)
			}
		}
	}
}

// checkKeys holds the keys of an account against what one node says of them.
func (l *fleetLedger) checkKeys(p *peer, h *holder) {
	c := newCaller("")
	defer c.close()
	got, err := c.do(http.MethodGet, p.url+"/v1/account/keys", h.session, nil)
	l.mu.Lock()
	keys := slices.Clone(h.keys)
	var list struct{ Data []listedKey }
	if err != nil || got.into(&list) != nil {
		l.failed(p, "list the keys of "+h.email, &got, err)
	}
	l.compareKeys(p, h, list.Data)
	l.mu.Unlock()
	for _, k := range keys {
		if k.secret == "" || k.asked > 0 && k.revoked == nil {
			continue
		}
		got, err := c.do(http.MethodGet, p.url+"/v1/account/usage", k.secret, nil)
		l.mu.Lock()
		switch {
		case err != nil || got.status != http.StatusOK && got.status != http.StatusUnauthorized:
			l.failed(p, "ask with a key", &got, err)
		case k.revoked != nil && got.status == http.StatusOK:
			l.wrong(accepted, "node %d accepts key %s of %s at the end, which was revoked", p.number, k.id, h.email)
		case k.revoked == nil && got.status != http.StatusOK:
			l.wrong(lost, "node %d does not accept key %s of %s at the end: %s", p.number, k.id, h.email, got.code)
		}
		l.mu.Unlock()
	}
}

// compareKeys holds a list of keys against the ledger; the caller holds mu.
func (l *fleetLedger) compareKeys(p *peer, h *holder, list []listedKey) {
	listed, active := map[string]listedKey{}, 0
	for _, k := range list {
		listed[k.Name] = k
		if k.Status == "active" {
			active++
		}
	}
	if active > 2 {
		l.wrong(accepted, "node %d: %s has %d active keys at the end", p.number, h.email, active)
	}
	for _, k := range h.keys {
		now, is := listed[k.name]
		switch {
		case k.outcome == refused && is:
			l.wrong(strange, "node %d: %s has %q, which was refused to it", p.number, h.email, k.name)
		case k.outcome != acknowledged:
		case !is && (k.asked == 0 || len(list) < listedMost):
			l.wrong(lost, "node %d: %s has lost %q", p.number, h.email, k.name)
		case is && (now.ID != k.id || k.asked == 0 && now.Status != "active" || k.revoked != nil && now.Status == "active"):
			l.wrong(lost, "node %d: %q of %s is %+v (revocation asked for: %v, acknowledged: %v)",
				p.number, k.name, h.email, now, k.asked > 0, k.revoked != nil)
		}
	}
}

// checkMinutes looks for a minute in which an account was surely admitted more often than it may be: the requests that were sent after
// its beginning and answered before its end. The caller holds mu.
func (l *fleetLedger) checkMinutes(h *holder) {
	byStart := slices.SortedFunc(slices.Values(h.stays), func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i, first := range byStart {
		inside := 0
		for _, s := range byStart[i:] {
			if s.from >= first.from+engine.MinuteSpan {
				break
			}
			if s.to < first.from+engine.MinuteSpan {
				inside++
			}
		}
		if inside > h.minute {
			l.wrong(granted, "%s was admitted %d times in the minute from %.3f s on, %d are allowed", h.email, inside, first.from.Seconds(), h.minute)
			return
		}
	}
}

// checkActive looks for a moment at which an account surely had three active keys. The caller holds mu.
func (l *fleetLedger) checkActive(h *holder) {
	type turn struct {
		at time.Duration
		by int
	}
	var turns []turn
	for _, k := range h.keys {
		if k.outcome != acknowledged {
			continue
		}
		turns = append(turns, turn{k.made.to, 1})
		if k.asked > 0 {
			turns = append(turns, turn{k.ended.from, -1})
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	active := 0
	for _, x := range turns {
		if active += x.by; active > 2 {
			l.wrong(accepted, "%s had %d active keys %.3f s after the beginning", h.email, active, x.at.Seconds())
			return
		}
	}
}

// compareNodes wants the same rates, institutions, history and accounts from all nodes.
func (l *fleetLedger) compareNodes(r *rig) {
	for _, path := range []string{"/v1/rates?limit=200", "/v1/institutions?limit=200", "/v1/currencies", "/v1/rates/history?limit=200", "accounts"} {
		first, what := "", ""
		for _, p := range r.peers {
			var text string
			var err error
			if path == "accounts" {
				text, err = p.accounts()
			} else {
				text, err = p.data1(path)
			}
			if p == r.peers[0] {
				first = text
			} else if text != first {
				what = fmt.Sprintf("node %d says\n%s\nand node %d\n%s", p.number, text, r.peers[0].number, first)
			}
			l.mu.Lock()
			if err != nil {
				l.wrong(strange, "node %d: %s: %v", p.number, path, err)
			} else if what != "" {
				l.wrong(lost, "%s: %.2000s", path, what)
			}
			l.mu.Unlock()
			what = ""
		}
	}
}

// data1 is the data of an answer, byte for byte, without the moment at which it was made.
func (p *peer) data1(path string) (string, error) {
	c := newCaller("")
	defer c.close()
	got, err := c.do(http.MethodGet, p.url+path, "", nil)
	if err != nil {
		return "", err
	}
	var whole struct{ Data json.RawMessage }
	err = got.into(&whole)
	return string(whole.Data), err
}

// accounts is what the operator sees of all accounts and their keys, but for what each node counts itself: when a key was used last there,
// and what is left of the windows.
func (p *peer) accounts() (string, error) {
	got, err := p.admin.do(http.MethodGet, "http://node/accounts", "", nil)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	for lines := bufio.NewScanner(bytes.NewReader(got.body)); lines.Scan(); {
		var one struct {
			ID         uint64
			Email      string
			CreatedAt  time.Time
			ActiveKeys int
			Suspended  bool
			Limits     any
		}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return "", err
		}
		got, err := p.admin.do(http.MethodGet, fmt.Sprintf("http://node/accounts/%d", one.ID), "", nil)
		var whole struct {
			Keys []struct{ ID, Name, Hint, CreatedAt, RevokedAt string }
		}
		if err != nil || got.into(&whole) != nil {
			return "", got.trouble("show an account", err)
		}
		fmt.Fprintf(&text, "%+v %+v\n", one, whole)
	}
	return text.String(), nil
}

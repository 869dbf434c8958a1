//go:build faults

package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// What changes an account or a rate: each change is noted before it is sent and after it was answered.

// signIn gives an account a new session.
func (l *ledger) signIn(office *postOffice, c *caller, m *member, a *ledgerAccount) error {
	token, err := office.session(c, m.url, a.email)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a.session, a.signed = token, l.began.Add(l.now())
	return nil
}

// newKey asks a node for a key.
func (l *ledger) newKey(c *caller, m *member, a *ledgerAccount) (*ledgerKey, answer) {
	l.mu.Lock()
	k := &ledgerKey{name: fmt.Sprintf("key %d", len(a.keys)), made: span{from: l.now()}, outcome: unknown, touched: true}
	others := 0 // that may be active
	for _, other := range a.keys {
		if other.outcome != refused && other.revoked == nil {
			others++
		}
	}
	a.keys, a.touched = append(a.keys, k), true
	a.changes++
	session := a.session
	l.mu.Unlock()
	made, got, err := createKey(c, m.url, session, k.name)
	l.mu.Lock()
	defer l.mu.Unlock()
	a.changes++
	k.made.to = l.now()
	k.outcome = l.came("keys", m, &got, err)
	k.id, k.secret = made.ID, made.Secret
	if l.alone() && got.status == http.StatusConflict && others < 2 {
		l.wrong(strange, "%s is refused a key although it has %d", a.email, others)
	}
	return k, got
}

// endKey asks a node to revoke one.
func (l *ledger) endKey(c *caller, m *member, a *ledgerAccount, k *ledgerKey) answer {
	l.mu.Lock()
	if k.asked++; k.asked == 1 {
		k.ended.from = l.now()
	}
	k.touched, a.touched = true, true
	a.changes++
	session := a.session
	l.mu.Unlock()
	got, err := revokeKey(c, m.url, session, k.id)
	l.mu.Lock()
	defer l.mu.Unlock()
	a.changes++
	switch outcome := l.came("revocations", m, &got, err); {
	case outcome == refused:
		k.asked--
	case outcome == acknowledged && k.revoked == nil:
		k.revoked, k.ended.to = m, l.now()
	}
	return got
}

// adopt learns from a node the keys of an account that were made without an answer, so that they can be revoked.
func (l *ledger) adopt(c *caller, m *member, a *ledgerAccount) {
	l.mu.Lock()
	session := a.session
	l.mu.Unlock()
	got, err := c.do(http.MethodGet, m.url+"/v1/account/keys", session, nil)
	var list struct{ Data []listedKey }
	if err != nil || got.into(&list) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range a.keys {
		for _, now := range list.Data {
			if now.Name == k.name && k.outcome == unknown {
				k.id = now.ID
			}
		}
	}
}

// pick is a key that is surely active, one that may be (loose), and one that is surely revoked (gone); nil when none is found.
func (a *ledgerAccount) pick(chance *rand.Rand) (good, loose, gone *ledgerKey) {
	if len(a.keys) == 0 {
		return nil, nil, nil
	}
	from := chance.IntN(len(a.keys))
	for i := range a.keys {
		k := a.keys[(from+i)%len(a.keys)]
		switch {
		case k.id == "" || k.outcome == refused:
		case k.revoked != nil && k.secret != "":
			gone = k
		case k.revoked != nil:
		case k.asked > 0 || k.outcome != acknowledged || k.secret == "":
			loose = k
		default:
			good = k
		}
	}
	return good, loose, gone
}

// active are the keys that surely are.
func (l *ledger) active(a *ledgerAccount) (keys []*ledgerKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range a.keys {
		if k.outcome == acknowledged && k.revoked == nil && k.asked == 0 {
			keys = append(keys, k)
		}
	}
	return keys
}

// suspend suspends an account, or takes that back. One goroutine does so.
func (l *ledger) suspend(m *member, a *ledgerAccount) {
	l.mu.Lock()
	on, doubted := !a.suspended, a.suspending
	a.suspending = true
	a.changes++
	l.mu.Unlock()
	path, body := "/restore", map[string]string{}
	if on {
		path, body = "/suspend", map[string]string{"reason": "a test"}
	}
	got, err := m.admin.do(http.MethodPost, "http://node/accounts/"+a.email+path, "", body)
	l.mu.Lock()
	defer l.mu.Unlock()
	a.changes++
	switch l.came("suspensions", m, &got, err) {
	case acknowledged:
		a.suspended, a.suspending = on, false
	case refused:
		a.suspending = doubted
	}
}

// limit sets the limits of an account through a node.
func (l *ledger) limit(m *member, a *ledgerAccount, day int) (answer, error) {
	l.mu.Lock()
	a.day = max(a.day, day)
	l.mu.Unlock()
	got, err := m.admin.do(http.MethodPost, "http://node/accounts/"+a.email+"/limit", "", map[string]int{"day": day, "minute": a.minute})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.came("limits", m, &got, err)
	return got, err
}

// set publishes the next value of a series through a node.
func (l *ledger) set(m *member, s *series) (number int, got answer) {
	l.mu.Lock()
	one := &setting{span: span{from: l.now()}, by: m, outcome: unknown}
	s.sets = append(s.sets, one)
	number = len(s.sets)
	l.mu.Unlock()
	got, err := m.admin.do(http.MethodPost, "http://node/rates", "", map[string]string{
		"institution": s.institution, "currency": "USD", "buy": valueOf(number), "sell": "59.9",
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	one.to = l.now()
	one.outcome = l.came("rates", m, &got, err)
	if one.closed = one.outcome != unknown; one.outcome != acknowledged {
		return number, got
	}
	var set struct{ Published *struct{ Buy string } }
	if err := got.into(&set); err != nil || set.Published == nil {
		l.wrong(strange, "node %d takes %s in and publishes nothing (%v): %s", m.number, valueOf(number), err, got.body)
	} else if shown, _ := numberOf(set.Published.Buy); s.before(shown, number) || l.alone() && shown != number {
		l.wrong(risen, "node %d takes %s of %s in and publishes %s", m.number, valueOf(number), s.institution, set.Published.Buy)
	}
	return number, got
}

// before reports that one value was surely replaced by another one: it was over before the other was sent. The caller holds mu.
func (s *series) before(a, b int) bool {
	switch {
	case a == b || b == 0:
		return false
	case a == 0:
		return s.sets[b-1].outcome == acknowledged
	}
	return s.sets[a-1].closed && s.sets[a-1].to < s.sets[b-1].from
}

// copied is the ledger at this moment.
func (l *ledger) copied() *ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	then := newLedger(l.terms)
	then.began, then.auditor, then.day = l.began, l.auditor, l.day
	for _, a := range l.accounts {
		one := *a
		one.keys, one.stays, one.days = nil, nil, map[engine.Date]int{}
		for _, k := range a.keys {
			key := *k
			one.keys = append(one.keys, &key)
		}
		then.accounts = append(then.accounts, &one)
	}
	for _, s := range l.series {
		one := &series{institution: s.institution}
		for _, x := range s.sets {
			set := *x
			one.sets = append(one.sets, &set)
		}
		then.series = append(then.series, one)
	}
	return then
}

// allow takes in what came after a ledger was copied: each of that may have happened or not.
func (l *ledger) allow(later *ledger) {
	for i, a := range l.accounts {
		then := later.accounts[i]
		for n, k := range then.keys {
			if n < len(a.keys) {
				a.keys[n].asked, a.keys[n].ended = max(a.keys[n].asked, k.asked), k.ended
				continue
			}
			key := *k
			if key.revoked = nil; key.outcome == acknowledged {
				key.outcome = unknown
			}
			a.keys = append(a.keys, &key)
		}
		a.session, a.maybe = then.session, farAway
		a.suspending = a.suspending || a.changes != then.changes
	}
	for i, s := range l.series {
		for _, x := range later.series[i].sets[len(s.sets):] {
			set := *x
			if set.outcome == acknowledged {
				set.outcome, set.closed = unknown, false
			}
			s.sets = append(s.sets, &set)
		}
	}
}

// client is one caller of a node or of a cluster under load.
type client struct {
	*ledger
	c      *caller
	chance *rand.Rand
	up     func() []*member // the nodes that are up, in any order
	own    []*ledgerAccount // whose keys it changes

	glances sync.Mutex // while it asks several nodes at once
	seen    map[*member]*glance
}

func newClient(l *ledger, c *caller, chance *rand.Rand, up func() []*member, own []*ledgerAccount) *client {
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
func (w *client) pick(a *ledgerAccount) (good, loose, gone *ledgerKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return a.pick(w.chance)
}

// read asks a node for a rate, mostly with a key of an account, of some requests in a hundred with one that was revoked or with none.
func (w *client) read(a *ledgerAccount, goneKeys, without int) {
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
func (w *client) askAny(m *member, a *ledgerAccount, k *ledgerKey) {
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

const (
	// realRounds is how often a smith makes a key and revokes it.
	realRounds = 10
	// endless is more rounds than a node on a full disk lives.
	endless = 100_000
	// exitFailStop is the program's exit code after a failed write.
	exitFailStop = 70
	// failStopMax is how long the program may be there after its first failed write.
	failStopMax = time.Second
)

// smith is a caller that makes and revokes keys of one account, one after the other, with a ledger of its own.
type smith struct {
	l  *ledger
	at *member
	a  *ledgerAccount
	c  *caller

	failed time.Time // when a change was first not carried out, or its answer did not come
	later  int       // good answers after that
}

// newSmith is signed in with a session, or has none yet.
func newSmith(t *testing.T, session string) *smith {
	t.Helper()
	s := &smith{l: newLedger(terms{day: 1000, minute: 60, lease: 16}), at: &member{number: 1}, c: newCaller("")}
	s.a = s.l.newAccount("ana@example.com", 1000, 60)
	s.a.session = session
	t.Cleanup(s.c.close)
	return s
}

// signIn gives it a session at a node.
func (s *smith) signIn(t *testing.T, office *postOffice, n *node) {
	t.Helper()
	s.at.url = n.url
	noError(t, s.l.signIn(office, s.c, s.at, s.a))
}

// turn makes a key and revokes it; it returns the first answer that is not good.
func (s *smith) turn() answer {
	k, got := s.l.newKey(s.c, s.at, s.a)
	if got.good() {
		got = s.l.endKey(s.c, s.at, s.a, k)
	}
	return got
}

// work takes turns until one fails, and then tries again until the process is gone or the rounds are over.
func (s *smith) work(n *node, rounds int) {
	s.at.url = n.url
	s.l.end()
	for round := 0; round < rounds && !n.over(); round++ {
		if !s.failed.IsZero() {
			if _, got := s.l.newKey(s.c, s.at, s.a); got.good() {
				s.later++
			}
		} else if got := s.turn(); !got.good() {
			s.failed = time.Now()
		}
	}
	if s.failed.IsZero() {
		n.send(syscall.SIGTERM)
	}
}

// made is how many keys were acknowledged.
func (s *smith) made() int { return s.l.count("keys", acknowledged) }

// check holds what a node lists against what was acknowledged.
func (s *smith) check(n *node) error {
	s.at.url = n.url
	s.l.checkKeys(s.c, s.at, s.a)
	if s.l.broken() > 0 {
		return errors.New(strings.Join(s.l.words, "; "))
	}
	return nil
}

// lasted is how long the process was there after the first failure.
func (s *smith) lasted(n *node) time.Duration {
	if s.failed.IsZero() {
		return 0
	}
	return n.ended.Sub(s.failed) // the caller may have waited longer than the process for a connection
}

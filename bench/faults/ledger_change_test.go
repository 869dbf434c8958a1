//go:build faults

package faults

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tasard/tasard/engine"
)

// What changes an account or a rate: each change is noted before it is sent and after it was answered.

// newKey creates a key of an account under a name that no other has. Only the worker that owns the account may call it.
func (l *ledger) newKey(c *caller, url string, tn *tenant, name string) {
	l.mu.Lock()
	good, unsure := tn.active()
	tn.touched = true
	l.mu.Unlock()
	made, got, err := createKey(c, url, tn.session, name)
	l.mu.Lock()
	defer l.mu.Unlock()
	tn.changes++
	switch {
	case err == nil && got.status == http.StatusCreated:
		l.tally.keys++
		tn.keys = append(tn.keys, &ledgerKey{id: made.ID, secret: made.Secret, touched: true})
		if good >= 2 {
			l.wrong(accepted, "%s has a third active key", tn.email)
		}
	case got.status == http.StatusConflict:
		l.tally.refused++
		if good+unsure+len(tn.doubts) < 2 {
			l.wrong(strange, "%s is refused a key although it has %d", tn.email, good)
		}
	case got.unsent():
	case l.died(&got, err): // a good answer that broke off names no key
		tn.doubts[name] = true
		l.tally.open++
	default:
		l.unanswered(&got, "create a key")
	}
}

// active counts the keys that are, and those of which nobody can say.
func (tn *tenant) active() (good, unsure int) {
	for _, key := range tn.keys {
		switch {
		case key.revoked:
		case key.asked:
			unsure++
		default:
			good++
		}
	}
	return good, unsure
}

// died tells that the node went before it could say how a change came out.
func (l *ledger) died(got *answer, err error) bool { return err != nil || l.dying && got.status >= 500 }

// end notes that the node is about to go.
func (l *ledger) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dying = true
}

// unanswered notes a refusal that is neither here nor there: the node may be busy or short of space.
func (l *ledger) unanswered(got *answer, what string) {
	if got.status == http.StatusServiceUnavailable {
		l.tally.refused++
		return
	}
	l.wrong(strange, "%s: %d %s: %.200s", what, got.status, got.code, got.body)
}

// endKey revokes a key. Only the worker that owns the account may call it.
func (l *ledger) endKey(c *caller, url string, tn *tenant, key *ledgerKey) {
	l.mu.Lock()
	key.asked, key.touched, tn.touched = true, true, true
	tn.changes++
	l.mu.Unlock()
	got, err := revokeKey(c, url, tn.session, key.id)
	l.mu.Lock()
	defer l.mu.Unlock()
	tn.changes++
	switch {
	case got.status == http.StatusNoContent:
		key.revoked = true
		l.tally.revocations++
	case got.unsent():
		key.asked = false
	case l.died(&got, err):
		l.tally.open++
	default:
		l.unanswered(&got, "revoke a key")
	}
}

// suspend suspends an account, or takes that back. One goroutine does so.
func (l *ledger) suspend(admin *caller, tn *tenant) {
	l.mu.Lock()
	on, doubted := !tn.suspended, tn.suspending
	tn.suspending = true
	tn.changes++
	l.mu.Unlock()
	path, body := "/restore", map[string]string{}
	if on {
		path, body = "/suspend", map[string]string{"reason": "a test"}
	}
	got, err := admin.do(http.MethodPost, "http://node/accounts/"+tn.email+path, "", body)
	l.mu.Lock()
	defer l.mu.Unlock()
	tn.changes++
	switch {
	case got.status == http.StatusOK:
		tn.suspended, tn.suspending = on, false
		l.tally.suspensions++
	case got.unsent():
		tn.suspending = doubted
	case l.died(&got, err):
		l.tally.open++
	default:
		tn.suspending = false
		l.unanswered(&got, "suspend")
	}
}

// publish publishes the next value of a quote. One goroutine does so.
func (l *ledger) publish(admin *caller, q *quote) {
	l.mu.Lock()
	q.asked++
	number := q.asked
	l.mu.Unlock()
	got, err := admin.do(http.MethodPost, "http://node/rates", "", map[string]string{
		"institution": q.institution, "currency": "USD", "buy": valueOf(number), "sell": "59.9",
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case got.status == http.StatusOK && err == nil:
		var set struct{ Published *struct{ Buy string } }
		if err := got.into(&set); err != nil || set.Published == nil || set.Published.Buy != valueOf(number) {
			l.wrong(strange, "%s is published as %s, want %s (%v)", q.institution, got.body, valueOf(number), err)
			return
		}
		q.must = number
		l.tally.rates++
	case got.unsent():
		q.asked--
	case l.died(&got, err):
		l.tally.open++
	default:
		l.unanswered(&got, "publish a rate")
	}
}

// enrol signs accounts up at a running node, with one key each: numbers from..to of the crowd.
func (l *ledger) enrol(office *postOffice, url string, from, to int) error {
	for number := from; number < to; number++ {
		email := fmt.Sprintf("tenant-%d@example.com", number)
		c := newCaller(addressOf(number))
		token, err := office.session(c, url, email)
		if err != nil {
			c.close()
			return err
		}
		made, got, err := createKey(c, url, token, "first")
		c.close()
		if err != nil || made.Secret == "" {
			return got.trouble("make the first key of "+email, err)
		}
		l.mu.Lock()
		l.tenants = append(l.tenants, &tenant{
			email: email, session: token, doubts: map[string]bool{}, floor: l.terms.day + 1,
			keys: []*ledgerKey{{id: made.ID, secret: made.Secret, touched: true}}, touched: true,
		})
		l.tally.keys++
		l.mu.Unlock()
	}
	return nil
}

// renew gives tenants new sessions.
func (l *ledger) renew(office *postOffice, url string, from, to int) error {
	for number := from; number < to; number++ {
		c := newCaller(addressOf(number))
		token, err := office.session(c, url, l.tenants[number].email)
		c.close()
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.tenants[number].session = token
		l.mu.Unlock()
	}
	return nil
}

// today begins to count anew when the day has changed; true when it has.
func (l *ledger) today(at time.Time) bool {
	day := engine.DateOf(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	if day == l.day {
		return false
	}
	l.day = day
	for _, tn := range l.tenants {
		tn.base, tn.admitted, tn.maybe, tn.raced, tn.total, tn.floor = 0, 0, 0, 0, 0, l.terms.day+1
	}
	return true
}

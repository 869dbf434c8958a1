//go:build faults

package faults

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
)

const (
	// checkers is how many goroutines ask after a start.
	checkers = 4
	// listedMost is how many keys an account lists at most.
	listedMost = 50
	// oldKeysTried is how many of the keys that were not touched lately are tried after each start; all of them at the end.
	oldKeysTried = 16
)

// scope is how much is looked at after a start: what was touched since the last look and a sample of the rest, or all.
type scope struct {
	whole  bool
	chance *rand.Rand
}

// check holds the ledger against a node that has just started, before anybody else asks it.
func (l *ledger) check(c, admin *caller, url, auditor string, s scope) {
	changed := l.today(time.Now())
	l.dying = false
	jobs := make(chan func())
	var done sync.WaitGroup
	for range checkers {
		done.Go(func() {
			for job := range jobs {
				job()
			}
		})
	}
	for _, tn := range l.tenants {
		jobs <- func() { l.checkUsage(c, url, tn, changed) }
		jobs <- func() { l.checkSuspension(c, admin, url, tn) }
		if tn.touched || s.whole {
			jobs <- func() { l.checkKeys(c, url, tn) }
		}
	}
	jobs <- func() { l.checkRates(c, url, auditor, "/v1/rates?currency=USD&limit=200", "published") }
	jobs <- func() { l.checkRates(c, url, auditor, "/v1/rates/history?currency=USD&limit=200", "in the history") }
	close(jobs)
	done.Wait()
	l.orderly = false
	l.settleRates()
	l.tryKeys(c, url, s)
}

// failed notes a question of a check that got no good answer.
func (l *ledger) failed(what string, got *answer, err error) {
	l.wrong(strange, "%s: %d %s, %v: %.200s", what, got.status, got.code, err, got.body)
}

// usage is what GET /v1/account/usage says.
type usage struct {
	Data struct {
		Day struct {
			Limit, Remaining int
			ResetAt          time.Time
		}
	}
}

// checkUsage holds the count of an account against what it was admitted: never less, and at most a lease more than what may have
// been admitted.
func (l *ledger) checkUsage(c *caller, url string, tn *tenant, changed bool) {
	got, err := c.do(http.MethodGet, url+"/v1/account/usage", tn.session, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	var now usage
	if err != nil || got.into(&now) != nil {
		l.failed("ask for the usage of "+tn.email, &got, err)
		return
	}
	day := now.Data.Day
	spent := day.Limit - day.Remaining
	if changed || engine.DateOf(day.ResetAt.Add(-time.Second)) != l.day {
		tn.base, tn.admitted, tn.maybe, tn.raced, tn.floor = spent, 0, 0, 0, day.Remaining
		return
	}
	least := tn.base + tn.admitted
	most := least + tn.maybe
	if l.terms.lease > 1 && !l.orderly {
		most += l.terms.lease
	}
	l.tally.checks++
	switch {
	case spent < min(least, day.Limit):
		l.wrong(granted, "%s has spent %d after the start, although %d had been admitted", tn.email, spent, least)
	case spent > most && l.terms.lease == 1 && !l.orderly && spent <= most+min(tn.raced, stormWorkers):
		l.tally.raced += spent - most
	case spent > most:
		l.wrong(forfeited, "%s has spent %d after the start: %d were admitted, %d may have been, and a lease is %d",
			tn.email, spent, least, tn.maybe, l.terms.lease)
	case day.Remaining > tn.floor:
		l.wrong(risen, "%s: %d remain after the start, %d had before", tn.email, day.Remaining, tn.floor)
	}
	tn.base, tn.admitted, tn.maybe, tn.raced, tn.floor = spent, 0, 0, 0, min(tn.floor, day.Remaining)
}

// checkSuspension looks at an account that was suspended or is about to be.
func (l *ledger) checkSuspension(c, admin *caller, url string, tn *tenant) {
	l.mu.Lock()
	suspended, suspending := tn.suspended, tn.suspending
	l.mu.Unlock()
	if !suspended && !suspending {
		return
	}
	got, err := admin.do(http.MethodGet, "http://node/accounts/"+tn.email, "", nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	var now struct{ SuspendedAt time.Time }
	if err != nil || got.into(&now) != nil {
		l.failed("look at "+tn.email, &got, err)
		return
	}
	l.tally.checks++
	is := !now.SuspendedAt.IsZero()
	if !suspending && !is {
		l.wrong(lost, "the suspension of %s is lost", tn.email)
	}
	tn.suspended, tn.suspending = is, false
}

// listedKey is a key as its account sees it.
type listedKey struct{ ID, Name, Status string }

// checkKeys holds the list of an account's keys against what is known of them.
func (l *ledger) checkKeys(c *caller, url string, tn *tenant) {
	got, err := c.do(http.MethodGet, url+"/v1/account/keys", tn.session, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	var list struct{ Data []listedKey }
	if err != nil || got.into(&list) != nil {
		l.failed("list the keys of "+tn.email, &got, err)
		return
	}
	known := map[string]*ledgerKey{}
	for _, key := range tn.keys {
		known[key.id] = key
	}
	active := 0
	for _, now := range list.Data {
		key := known[now.ID]
		delete(known, now.ID)
		if now.Status == "active" {
			active++
		}
		if key == nil {
			if !tn.doubts[now.Name] {
				l.wrong(strange, "%s has a key that nobody asked for: %+v", tn.email, now)
			}
			key = &ledgerKey{id: now.ID}
			tn.keys = append(tn.keys, key)
		}
		l.compare(tn, key, now.Status)
	}
	for id, key := range known {
		if len(list.Data) >= listedMost && key.asked {
			key.revoked = true // K5: the oldest revoked keys leave the list
			continue
		}
		l.wrong(lost, "%s: key %s is lost", tn.email, id)
	}
	if active > 2 {
		l.wrong(accepted, "%s has %d active keys", tn.email, active)
	}
	l.tally.checks += len(tn.keys)
	tn.touched = false
	clear(tn.doubts)
}

// compare holds a key against its state on the node, and settles what was not known.
func (l *ledger) compare(tn *tenant, key *ledgerKey, status string) {
	switch {
	case key.revoked && status == "active":
		l.wrong(lost, "%s: the revocation of key %s is lost", tn.email, key.id)
	case !key.asked && status != "active":
		l.wrong(strange, "%s: key %s is %s, although nobody revoked it", tn.email, key.id, status)
	}
	key.revoked = status != "active"
	key.asked = key.revoked
}

// checkRates reads a page of rates or of the history: each quote must be there, with the newest value that was acknowledged or one
// that was sent later.
func (l *ledger) checkRates(c *caller, url, auditor, path, where string) {
	got, err := c.do(http.MethodGet, url+path, auditor, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	var page struct {
		Data []struct{ InstitutionID, SourceID, Buy string }
	}
	if err != nil || got.into(&page) != nil {
		l.failed("read "+path, &got, err)
		return
	}
	shown := map[string]string{}
	for _, rate := range page.Data {
		if rate.SourceID == "manual" {
			shown[rate.InstitutionID] = rate.Buy
		}
	}
	for _, q := range l.quotes {
		l.tally.checks++
		number, is := numberOf(shown[q.institution])
		if q.must > 0 && (!is || number < q.must) {
			l.wrong(lost, "%s: %q is %s, although %s was acknowledged", q.institution, shown[q.institution], where, valueOf(q.must))
		}
		if number > q.asked {
			l.wrong(strange, "%s: %q is %s, which nobody published", q.institution, shown[q.institution], where)
		}
		q.seen = append(q.seen, number)
	}
}

// settleRates wants rates and history to agree, and takes what they say for acknowledged.
func (l *ledger) settleRates() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.quotes {
		for _, number := range q.seen {
			if number != q.seen[0] {
				l.wrong(lost, "%s: published is %s, in the history %s", q.institution, valueOf(q.seen[0]), valueOf(number))
			}
			q.must = max(q.must, number)
		}
		q.seen = q.seen[:0]
	}
}

// trial is a key that is tried after a start.
type trial struct {
	tenant *tenant
	key    *ledgerKey
}

// tryKeys asks with keys: those that were touched lately and a sample of all others, or all.
func (l *ledger) tryKeys(c *caller, url string, s scope) {
	l.mu.Lock()
	var now, later []trial
	for _, tn := range l.tenants {
		for _, key := range tn.keys {
			switch {
			case key.secret == "":
			case key.touched || s.whole:
				now = append(now, trial{tn, key})
			default:
				later = append(later, trial{tn, key})
			}
			key.touched = false
		}
	}
	l.mu.Unlock()
	for range min(oldKeysTried, len(later)) {
		now = append(now, later[s.chance.IntN(len(later))])
	}
	trials := make(chan trial)
	var done sync.WaitGroup
	for range checkers {
		done.Go(func() {
			for x := range trials {
				l.try(c, url, x)
			}
		})
	}
	for _, x := range now {
		trials <- x
	}
	close(trials)
	done.Wait()
}

// try asks with one key for what is not charged, and with a revoked one for data too.
func (l *ledger) try(c *caller, url string, x trial) {
	got, err := c.do(http.MethodGet, url+"/v1/account/usage", x.key.secret, nil)
	var data answer
	if err == nil && x.key.revoked {
		data, err = c.do(http.MethodGet, url+"/v1/rates?limit=1", x.key.secret, nil)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.checks++
	want := http.StatusOK
	if x.key.revoked || x.tenant.suspended {
		want = http.StatusUnauthorized
	}
	switch {
	case err != nil:
		l.failed("try a key of "+x.tenant.email, &got, err)
	case got.status == http.StatusOK && want != got.status, data.status == http.StatusOK:
		l.wrong(accepted, "%s: key %s is accepted (revoked: %v, suspended: %v)", x.tenant.email, x.key.id, x.key.revoked, x.tenant.suspended)
	case got.status != want:
		l.wrong(lost, "%s: key %s is answered %d %s, want %d", x.tenant.email, x.key.id, got.status, got.code, want)
	}
}

// auditorOf lets the first account of a prepared directory ask without end: what is read with its key is not part of the ledger.
func auditorOf(admin *caller) error {
	got, err := admin.do(http.MethodPost, "http://node/accounts/1/limit", "", map[string]int{"day": 100_000_000, "minute": 60_000})
	if err != nil || !got.good() {
		return got.trouble("lift the auditor's limits", err)
	}
	return nil
}

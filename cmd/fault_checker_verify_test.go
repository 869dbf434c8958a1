//go:build faults

package cmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

const (
	// checkWorkers is the number of goroutines of a check.
	checkWorkers = 4
	// listedMost is the maximum number of keys in the list of an account.
	listedMost = 50
	// oldKeysTried is how many keys without recent changes are tried after each start; at the end all are.
	oldKeysTried = 16
)

// checkScope is what is checked: recent changes and a sample of the rest, or everything.
type checkScope struct {
	whole  bool
	chance *rand.Rand
}

// inParallel calls do for each item, in several goroutines, which are numbered from 0.
func inParallel[T any](workers int, items []T, do func(worker int, item T)) {
	queue := make(chan T)
	var done sync.WaitGroup
	for worker := range workers {
		done.Go(func() {
			for item := range queue {
				do(worker, item)
			}
		})
	}
	for _, item := range items {
		queue <- item
	}
	close(queue)
	done.Wait()
}

// check checks nodes at rest, all of which have the same records; the first one decides what was unknown.
func (l *checker) check(s checkScope, members ...*endpoint) {
	c := newHTTPClient("")
	defer c.close()
	changed := l.startDay(time.Now())
	l.crashing = false
	for _, m := range members {
		jobs := []func(){
			func() { l.checkRates(c, m, "/v1/rates?currency=USD&limit=200") },
			func() { l.checkRates(c, m, "/v1/rates/history?currency=USD&limit=200") },
		}
		for _, a := range l.accounts {
			if l.singleNode() {
				jobs = append(jobs, func() { l.checkUsage(c, m, a, changed) })
			}
			if a.suspended || a.suspending {
				jobs = append(jobs, func() { l.checkSuspension(m, a) })
			}
			if a.touched || s.whole {
				jobs = append(jobs, func() { l.checkKeys(c, m, a) })
			}
		}
		inParallel(checkWorkers, jobs, func(_ int, job func()) { job() })
		l.checkHistory(m)
		l.tryKeys(c, m, s)
	}
	l.stoppedInOrder = false
}

// checkAll is the check at the end, when all nodes have the same records, including conditions on the whole history.
func (l *checker) checkAll(members ...*endpoint) {
	l.check(checkScope{whole: true}, members...)
	if len(members) > 1 {
		l.compareNodes(members)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.accounts {
		l.checkMinutes(a)
		l.checkActive(a)
	}
}

// failed records a request of a check without a good answer; the caller holds mu.
func (l *checker) failed(m *endpoint, what string, got *answer, err error) {
	l.violate(unexplained, "node %d: %s: %d %s, %v: %.300s", m.number, what, got.status, got.code, err, got.body)
}

// startDay restarts the counts if the day has changed; true if it has.
func (l *checker) startDay(at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	day := engine.DateOf(at)
	if day == l.day {
		return false
	}
	l.day = day
	for _, a := range l.accounts {
		a.spentAtStart, a.admitted, a.inDoubt, a.raced, a.remainingMin = 0, 0, 0, 0, a.day+1
	}
	return true
}

// keyUsage is the response of GET /v1/account/usage.
type keyUsage struct {
	Data struct {
		Day struct {
			Limit, Remaining int
			ResetAt          time.Time
		}
	}
}

// checkUsage checks that an account was charged for what it was admitted, and for at most a lease more than it may
// have been.
func (l *checker) checkUsage(c *httpClient, m *endpoint, a *trackedAccount, changed bool) {
	got, err := c.do(http.MethodGet, m.url+"/v1/account/usage", a.session, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	var now keyUsage
	if err != nil || got.decode(&now) != nil {
		l.failed(m, "ask for the usage of "+a.email, &got, err)
		return
	}
	day := now.Data.Day
	spent := day.Limit - day.Remaining
	least := a.spentAtStart + a.admitted
	most := least + a.inDoubt
	if l.limits.lease > 1 && !l.stoppedInOrder {
		most += max(l.limits.lease, min(account.LeaseGrownMax, day.Limit/10)) // decision L1
	}
	switch {
	case changed || engine.DateOf(day.ResetAt.Add(-time.Second)) != l.day:
		a.remainingMin = day.Remaining
	case spent < min(least, day.Limit):
		l.violate(overGranted, "%s has spent %d after the start, although %d had been admitted", a.email, spent, least)
	case spent > most && l.limits.lease == 1 && !l.stoppedInOrder && spent <= most+min(a.raced, loadWorkers):
		l.raced += spent - most
	case spent > most:
		l.violate(overForfeited, "%s has spent %d after the start: %d were admitted, %d may have been, and a lease is %d",
			a.email, spent, least, a.inDoubt, l.limits.lease)
	case day.Remaining > a.remainingMin:
		l.violate(wentBack, "%s: %d remain after the start, %d had before", a.email, day.Remaining, a.remainingMin)
	}
	l.checks++
	a.spentAtStart, a.admitted, a.inDoubt, a.raced, a.remainingMin = spent, 0, 0, 0, min(a.remainingMin, day.Remaining)
}

// checkSuspension checks an account that is, or is being, suspended.
func (l *checker) checkSuspension(m *endpoint, a *trackedAccount) {
	got, err := m.admin.do(http.MethodGet, "http://node/accounts/"+a.email, "", nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	var now struct{ SuspendedAt time.Time }
	if err != nil || got.decode(&now) != nil {
		l.failed(m, "look at "+a.email, &got, err)
		return
	}
	l.checks++
	is := !now.SuspendedAt.IsZero()
	if !a.suspending && a.suspended && !is {
		l.violate(lostWrite, "node %d: the suspension of %s is lost", m.number, a.email)
	}
	a.suspended, a.suspending = is, false
}

// listedKey is a key in the list of an account.
type listedKey struct{ ID, Name, Status string }

// checkKeys requests and compares the list of an account's keys.
func (l *checker) checkKeys(c *httpClient, m *endpoint, a *trackedAccount) {
	got, err := c.do(http.MethodGet, m.url+"/v1/account/keys", a.session, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	var list struct{ Data []listedKey }
	if err != nil || got.decode(&list) != nil {
		l.failed(m, "list the keys of "+a.email, &got, err)
		return
	}
	l.compareKeys(m, a, list.Data)
}

// compareKeys compares a list with what is known, and decides what was unknown; the caller holds mu.
func (l *checker) compareKeys(m *endpoint, a *trackedAccount, list []listedKey) {
	listed, active := map[string]listedKey{}, 0
	for _, now := range list {
		if _, twice := listed[now.Name]; twice {
			l.violate(unexplained, "node %d: %s has %q twice", m.number, a.email, now.Name)
		}
		listed[now.Name] = now
		if now.Status == "active" {
			active++
		}
	}
	if active > 2 {
		l.violate(wronglyAccepted, "node %d: %s has %d active keys", m.number, a.email, active)
	}
	for _, k := range a.keys {
		now, is := listed[k.name]
		delete(listed, k.name)
		l.checks++
		switch {
		case k.outcome == refused && is:
			l.violate(unexplained, "node %d: %s has %q, which was refused to it", m.number, a.email, k.name)
		case k.outcome == unknown && is:
			k.outcome, k.id, k.made.to = acknowledged, now.ID, l.now()
		case k.outcome == unknown:
			k.outcome = refused
		case k.outcome == acknowledged && !is && (k.asked == 0 || len(list) < listedMost): // the list omits the oldest revoked keys
			l.violate(lostWrite, "node %d: %s has lost %q", m.number, a.email, k.name)
		case is && (now.ID != k.id || k.asked == 0 && now.Status != "active" || k.revoked != nil && now.Status == "active"):
			l.violate(lostWrite, "node %d: %q of %s is %+v (revocation asked for: %v, acknowledged: %v)",
				m.number, k.name, a.email, now, k.asked > 0, k.revoked != nil)
		}
		switch {
		case k.outcome != acknowledged || k.revoked != nil || k.asked == 0:
		case is && now.Status == "active":
			k.asked = 0
		default:
			k.revoked, k.ended.to = m, l.now()
		}
	}
	for _, now := range listed {
		l.violate(unexplained, "node %d: %s has a key that was never asked for: %+v", m.number, a.email, now)
	}
	a.touched = false
}

// checkRates requires each series on a page of rates, with the newest acknowledged value or one that may be newer.
func (l *checker) checkRates(c *httpClient, m *endpoint, path string) {
	got, err := c.do(http.MethodGet, m.url+path, l.auditor, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	var shown page
	if err != nil || got.decode(&shown) != nil {
		l.failed(m, path, &got, err)
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
		l.checks++
		if number > len(s.values) {
			l.violate(unexplained, "node %d shows %s of %s, which was never set", m.number, valueOf(number), s.institution)
			continue
		}
		s.seen = append(s.seen, number)
		if number > 0 {
			s.values[number-1].shown = true
		}
		for i, one := range s.values {
			if one.outcome == acknowledged && s.before(number, i+1) {
				l.violate(lostWrite, "node %d shows %s of %s at rest, although %s was acknowledged later", m.number, valueOf(number), s.institution, valueOf(i+1))
				break
			}
			if one.outcome == refused && one.shown {
				l.violate(unexplained, "%s of %s was refused by node %d and shown all the same", valueOf(i+1), s.institution, one.by.number)
			}
		}
	}
}

// checkHistory requires rates and history of a node to agree, and takes their values for acknowledged.
func (l *checker) checkHistory(m *endpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.series {
		for _, number := range s.seen {
			if number != s.seen[0] {
				l.violate(lostWrite, "node %d: %s is %s among the rates, %s in the history or the other way round", m.number, s.institution, valueOf(s.seen[0]), valueOf(number))
			}
			if number > 0 && s.values[number-1].outcome == unknown {
				s.values[number-1].outcome, s.values[number-1].by = acknowledged, m
			}
		}
		for _, one := range s.values {
			if !one.decided {
				one.decided, one.to = true, l.now()
			}
		}
		s.seen = nil
	}
}

// keyTrial is a key to try.
type keyTrial struct {
	account *trackedAccount
	key     *accountKey
}

// tryKeys sends requests with keys: those with recent changes and a sample of the others, or all.
func (l *checker) tryKeys(c *httpClient, m *endpoint, s checkScope) {
	var now, later []keyTrial
	for _, a := range l.accounts {
		for _, k := range a.keys {
			switch {
			case k.secret == "" || k.outcome != acknowledged:
			case k.touched || s.whole:
				now = append(now, keyTrial{a, k})
			default:
				later = append(later, keyTrial{a, k})
			}
			k.touched = false
		}
	}
	for range min(oldKeysTried, len(later)) {
		now = append(now, later[s.chance.IntN(len(later))])
	}
	inParallel(checkWorkers, now, func(_ int, x keyTrial) { l.tryKey(c, m, x) })
}

// tryKey sends requests with one key that are not charged, and with a revoked one also for data where data requires a
// key.
func (l *checker) tryKey(c *httpClient, m *endpoint, x keyTrial) {
	got, err := c.do(http.MethodGet, m.url+"/v1/account/usage", x.key.secret, nil)
	var data answer
	if err == nil && x.key.revoked != nil && l.auditor != "" {
		data, err = c.do(http.MethodGet, m.url+"/v1/rates?limit=1", x.key.secret, nil)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checks++
	want := http.StatusOK
	if x.key.revoked != nil || x.account.suspended {
		want = http.StatusUnauthorized
	}
	switch {
	case err != nil:
		l.failed(m, "try a key of "+x.account.email, &got, err)
	case got.status == http.StatusOK && want != got.status, data.status == http.StatusOK:
		l.violate(wronglyAccepted, "node %d: key %s of %s is accepted (revoked: %v, suspended: %v)",
			m.number, x.key.id, x.account.email, x.key.revoked != nil, x.account.suspended)
	case got.status != want:
		l.violate(lostWrite, "node %d: key %s of %s is answered %d %s, want %d", m.number, x.key.id, x.account.email, got.status, got.code, want)
	}
}

// checkMinutes searches a minute in which an account was certainly admitted too often. The caller holds mu.
func (l *checker) checkMinutes(a *trackedAccount) {
	byStart := slices.SortedFunc(slices.Values(a.admissions), func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	for i, first := range byStart {
		inside := 0
		for _, s := range byStart[i:] {
			if s.from >= first.from+account.MinuteSpan {
				break
			}
			if s.to < first.from+account.MinuteSpan {
				inside++
			}
		}
		if inside > a.minute {
			l.violate(overGranted, "%s was admitted %d times in the minute from %.3f s on, %d are allowed", a.email, inside, first.from.Seconds(), a.minute)
			return
		}
	}
}

// checkActive searches a time at which an account certainly had three active keys. The caller holds mu.
func (l *checker) checkActive(a *trackedAccount) {
	type turn struct {
		at time.Duration
		by int
	}
	var turns []turn
	for _, k := range a.keys {
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
			l.violate(wronglyAccepted, "%s had %d active keys %.3f s after the beginning", a.email, active, x.at.Seconds())
			return
		}
	}
}

// compareNodes requires the same rates, institutions, history and accounts from all nodes.
func (l *checker) compareNodes(members []*endpoint) {
	for _, path := range []string{"/v1/rates?limit=200", "/v1/institutions?limit=200", "/v1/currencies", "/v1/rates/history?limit=200", "accounts"} {
		first := ""
		for _, m := range members {
			text, err := m.data(path)
			l.mu.Lock()
			switch {
			case err != nil:
				l.violate(unexplained, "node %d: %s: %v", m.number, path, err)
			case m == members[0]:
				first = text
			case text != first:
				l.violate(lostWrite, "%s: %.2000s", path, fmt.Sprintf("node %d says\n%s\nand node %d\n%s", m.number, text, members[0].number, first))
			}
			l.mu.Unlock()
		}
	}
}

// data returns the data of an answer without times; for "accounts" what the operator sees, without counts of the node
// itself.
func (m *endpoint) data(path string) (string, error) {
	if path == "accounts" {
		return m.accounts()
	}
	c := newHTTPClient("")
	defer c.close()
	got, err := c.do(http.MethodGet, m.url+path, "", nil)
	if err != nil {
		return "", err
	}
	var whole struct{ Data json.RawMessage }
	err = got.decode(&whole)
	return string(whole.Data), err
}

func (m *endpoint) accounts() (text string, err error) {
	fields := []string{"id", "email", "createdAt", "activeKeys", "suspended", "limits", "day", "minute", "keys", "name", "hint", "revokedAt"}
	for id, path := 0, "/accounts"; ; id, path = id+1, fmt.Sprintf("/accounts/%d", id+1) {
		got, err := m.admin.do(http.MethodGet, "http://node"+path, "", nil)
		if err != nil || got.status == http.StatusNotFound {
			return text, err
		}
		kept, err := onlyFields([]byte(got.body), fields...)
		if err != nil {
			return text, err
		}
		text += string(kept)
	}
}

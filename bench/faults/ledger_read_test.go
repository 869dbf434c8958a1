//go:build faults

package faults

import (
	"net/http"
	"time"

	"github.com/tasard/tasard/engine"
)

// glance is what one caller has seen at one node, in order.
type glance struct {
	cut    time.Time // generatedAt of the newest answer
	values map[*series][]int
}

func newGlance() *glance { return &glance{values: map[*series][]int{}} }

// page is an answer with rates.
type page struct {
	Data []struct{ InstitutionID, SourceID, Buy string }
	Meta struct{ GeneratedAt time.Time }
}

// request is a data request under way: what was known when it was sent.
type request struct {
	by   *account // nil: without a key
	key  *ledgerKey
	want *series
	at   *member
	seen *glance

	from     time.Duration
	floor    int
	changes  int
	revoked  bool
	barred   bool // its account is suspended: it must be refused, unless something changes meanwhile
	entitled bool // its key is good, unless something changes meanwhile
}

// ask asks a node for a rate.
func (l *ledger) ask(c *caller, r request) {
	secret := ""
	l.begin(&r)
	if r.key != nil {
		secret = r.key.secret
	}
	got, err := c.do(http.MethodGet, r.at.url+"/v1/rates?currency=USD&institution="+r.want.institution, secret, nil)
	l.told(&r, &got, err)
}

// begin notes that a request is about to be sent.
func (l *ledger) begin(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.from = l.now()
	if r.by == nil {
		return
	}
	a, k := r.by, r.key
	r.floor, r.changes, r.revoked = a.floor, a.changes, k.revoked != nil
	r.barred = a.suspended && !a.suspending
	r.entitled = k.asked == 0 && !a.suspended && !a.suspending
	if !r.revoked {
		a.open++
	}
}

// told notes how a request came out.
func (l *ledger) told(r *request, got *answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what, to := "reads", l.now()
	if r.key != nil {
		what = "keyed reads"
	}
	outcome := l.came(what, r.at, got, err)
	if got.status == http.StatusOK {
		var shown page
		switch {
		case err != nil: // the headers came
		case got.into(&shown) != nil:
			l.wrong(strange, "node %d answers: %s", r.at.number, got.body)
		default:
			l.saw(r, &shown)
		}
	}
	if r.key == nil {
		return
	}
	a := r.by
	if !r.revoked {
		a.open--
		a.maybe += got.again()
	}
	switch {
	case got.status == http.StatusOK:
		l.admitted(r, got, span{r.from, to})
	case !l.alone() || got.unsent():
	case outcome == unknown && (got.status == 0 || l.dying):
		if !r.revoked {
			a.maybe++
		}
	case got.status == http.StatusUnauthorized:
		if !r.revoked && !r.barred {
			a.raced++
		}
		if r.entitled && a.changes == r.changes {
			l.wrong(lost, "%s: its active key %s is refused: %s", a.email, r.key.id, got.code)
		}
	case got.code == "quota_exceeded" && a.base+a.admitted+a.open+a.maybe+1 < a.day:
		l.wrong(strange, "%s is told that its quota is used up after %d+%d of %d", a.email, a.base, a.admitted, a.day)
	}
}

// saw holds a page against what was seen at the same node before, and what it had acknowledged when the page was asked for. The
// caller holds mu.
func (l *ledger) saw(r *request, shown *page) {
	g, m, s := r.seen, r.at, r.want
	if shown.Meta.GeneratedAt.Before(g.cut) {
		l.wrong(risen, "node %d answers with a page of %v after one of %v", m.number, shown.Meta.GeneratedAt, g.cut)
	}
	g.cut = shown.Meta.GeneratedAt
	if len(shown.Data) != 1 {
		l.wrong(lost, "node %d shows %d rates of %s", m.number, len(shown.Data), s.institution)
		return
	}
	number, _ := numberOf(shown.Data[0].Buy) // the value before all is 0
	if number > len(s.sets) {
		l.wrong(strange, "node %d shows %s of %s, which was never set", m.number, shown.Data[0].Buy, s.institution)
		return
	}
	if number > 0 {
		s.sets[number-1].shown = true
	}
	past := g.values[s]
	if len(past) == 0 || past[len(past)-1] != number {
		for i, old := range past {
			if old == number && i < len(past)-1 || i == len(past)-1 && s.before(number, old) {
				l.wrong(risen, "node %d shows %s of %s again after %v", m.number, valueOf(number), s.institution, past[max(0, len(past)-5):])
				break
			}
		}
		g.values[s] = append(past, number)
	}
	for i := len(s.sets) - 1; i >= 0; i-- {
		if one := s.sets[i]; one.by == m && one.outcome == acknowledged && one.to < r.from {
			if s.before(number, i+1) {
				l.wrong(risen, "node %d shows %s of %s, although it had acknowledged %s before", m.number, valueOf(number), s.institution, valueOf(i+1))
			}
			return
		}
	}
}

// admitted counts a request that a node has admitted for an account and holds its headers against what was known; the caller
// holds mu.
func (l *ledger) admitted(r *request, got *answer, s span) {
	a, k := r.by, r.key
	day, minute, ok := got.windows()
	tighter, is := got.tighter()
	switch {
	case !ok || !is:
		l.wrong(strange, "node %d gives a good answer without limits: %v", r.at.number, got.header)
		return
	case !l.alone() && day.limit == clusterDay: // to the node the caller has no key: it knows it not yet, or not any more
		if k.asked == 0 {
			l.stray++
		}
		return
	case r.revoked && k.revoked != r.at: // another node may not have heard of it
		l.late = max(l.late, s.from-k.ended.to)
	case r.revoked || r.barred && a.changes == r.changes:
		l.wrong(accepted, "node %d admits %s with key %s (revoked: %v, suspended: %v)", r.at.number, a.email, k.id, r.revoked, r.barred)
		return
	}
	at, end := engine.DateOf(l.began.Add(s.from)), engine.DateOf(l.began.Add(s.to))
	if tighter.remaining != min(day.remaining, minute.remaining) {
		l.wrong(strange, "X-RateLimit-Remaining is %d, the windows have %d and %d", tighter.remaining, day.remaining, minute.remaining)
	}
	if l.alone() {
		if day.remaining >= r.floor && at == l.day && end == l.day {
			l.wrong(risen, "%s: %d requests remain, although %d did before it was sent", a.email, day.remaining, r.floor)
		}
		a.floor = min(a.floor, day.remaining)
	}
	a.admitted++
	if a.minute < minuteFree {
		a.stays = append(a.stays, s)
	}
	if at == end {
		if a.days[at]++; a.days[at] > a.day {
			l.wrong(granted, "%s was admitted %d times on %v, %d are allowed", a.email, a.days[at], at, a.day)
		}
	}
}

// minuteFree is a limit of the minute that is not reached: of an account with it the moments of its requests are not kept.
const minuteFree = 1000

// opened notes how many sessions a code has opened that several nodes were asked about at once, after so many wrong tries; must
// tells that nothing stood in its way.
func (l *ledger) opened(email string, sessions, tries int, must bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case sessions > 1:
		l.wrong(accepted, "a code of %s opened %d sessions", email, sessions)
	case sessions == 1 && tries >= 5:
		l.wrong(accepted, "a code of %s opened a session after %d wrong tries", email, tries)
	case sessions == 0 && must:
		l.wrong(lost, "the code of %s opened no session", email)
	}
}

// writtenAfter is when the first rate was acknowledged that was sent after a moment.
func (l *ledger) writtenAfter(moment time.Duration) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, found := time.Duration(0), false
	for _, s := range l.series {
		for i := len(s.sets) - 1; i >= 0 && s.sets[i].from > moment; i-- {
			if one := s.sets[i]; one.outcome == acknowledged && (!found || one.to < first) {
				first, found = one.to, true
			}
		}
	}
	return first, found
}

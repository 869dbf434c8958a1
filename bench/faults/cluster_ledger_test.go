//go:build faults

package faults

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// What became of an operation, as far as its caller can know.
const (
	acknowledged = iota
	refused      // it was surely not carried out
	unknown      // it may have been, or may still be
	outcomes
)

// span is the time of an operation: it took effect somewhere between the two, counted from the beginning of the ledger.
type span struct{ from, to time.Duration }

// fleetLedger is what the callers of a cluster know. Everything below is guarded by mu.
type fleetLedger struct {
	mu       sync.Mutex
	began    time.Time
	holders  []*holder
	series   []*series
	counts   map[string]*[outcomes]int
	reasons  map[string]int // of refusals, by what and error code
	breaches map[breach]int
	words    []string
	stray    int           // requests whose key the node did not know yet
	late     time.Duration // how long after its revocation a key was good for at another node, at most
	trials   int           // codes that several nodes were asked about at once
}

// holder is an account as its callers know it.
type holder struct {
	email   string
	session string
	signed  time.Time // when the session began
	day     int       // the highest limit that it ever had, or was about to have
	minute  int
	keys    []*heldKey
	stays   []span // acknowledged data requests, in the order of their end
	days    map[engine.Date]int
}

// heldKey is a key, from the moment when somebody asks for it.
type heldKey struct {
	name, id, secret string
	made             span
	outcome          int
	asked            int  // wishes to revoke it that were not surely without effect
	ended            span // its revocation: from is when the first of these wishes was sent
	revoked          *peer
}

// setting is one value of a rate, in a series. Each is sent once.
type setting struct {
	span
	by      *peer
	outcome int
	shown   bool // some node has shown it
}

// series is the rate of one institution: its values are numbered from 1 on, and 0 is whatever was there before.
type series struct {
	institution string
	sets        []*setting
}

func newFleetLedger() *fleetLedger {
	return &fleetLedger{began: time.Now(), counts: map[string]*[outcomes]int{}, reasons: map[string]int{}, breaches: map[breach]int{}}
}

func (l *fleetLedger) now() time.Duration { return time.Since(l.began) }

// wrong notes a breach; the caller holds mu.
func (l *fleetLedger) wrong(kind breach, format string, args ...any) {
	l.breaches[kind]++
	if len(l.words) < breachesKept {
		l.words = append(l.words, fmt.Sprintf("%s, after %.1f s: ", kind, l.now().Seconds())+fmt.Sprintf(format, args...))
	}
}

// broken is how many breaches there are, of some kinds, or of all without one.
func (l *fleetLedger) broken(kinds ...breach) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := 0
	for kind, count := range l.breaches {
		if len(kinds) == 0 || slices.Contains(kinds, kind) {
			sum += count
		}
	}
	return sum
}

// report fails the test for each breach.
func (l *fleetLedger) report(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, words := range l.words {
		t.Error(words)
	}
}

func (l *fleetLedger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(l.counts)) {
		c := l.counts[what]
		parts = append(parts, fmt.Sprintf("%d/%d/%d %s", c[acknowledged], c[refused], c[unknown], what))
	}
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(l.reasons)) {
		reasons = append(reasons, fmt.Sprintf("%d %s", l.reasons[why], why))
	}
	admitted := 0
	for _, h := range l.holders {
		admitted += len(h.stays)
	}
	b := l.breaches
	return fmt.Sprintf("acknowledged/refused/unknown: %s (refused: %s), %d of the reads for accounts; %d lost, %d over-granted, %d wrongly accepted, %d older than seen, %d strange; "+
		"%d requests came to a node before their key; a revoked key was good elsewhere for at most %d ms",
		strings.Join(parts, ", "), strings.Join(reasons, ", "), admitted, b[lost], b[granted], b[accepted], b[risen], b[strange], l.stray, l.late.Milliseconds())
}

// verdict is what a caller knows of an operation after its answer; strange tells that nothing explains that one.
func verdict(got *answer, err error) (outcome int, odd bool) {
	switch {
	case err != nil && got.unsent():
		return refused, false
	case err != nil:
		return unknown, false
	case got.good():
		return acknowledged, false
	case got.status == http.StatusServiceUnavailable && got.code == "read_only":
		return refused, false
	case got.status == http.StatusServiceUnavailable:
		return unknown, false // it stops, or the answer took too long
	case got.status == http.StatusInternalServerError && strings.Contains(string(got.body), "may or may not"):
		return unknown, false
	case got.status >= 500:
		return unknown, true
	}
	return refused, false
}

// came counts an operation and says how it came out; the caller holds mu.
func (l *fleetLedger) came(what string, p *peer, got *answer, err error) int {
	outcome, odd := verdict(got, err)
	if l.counts[what] == nil {
		l.counts[what] = &[outcomes]int{}
	}
	l.counts[what][outcome]++
	if outcome == refused {
		l.reasons[what+" "+got.code]++
	}
	if odd {
		l.wrong(strange, "%s at node %d: %d %s: %.300s", what, p.number, got.status, got.code, got.body)
	}
	return outcome
}

// set publishes the next value of a series through a node.
func (l *fleetLedger) set(p *peer, s *series) (number int, got answer) {
	l.mu.Lock()
	one := &setting{span: span{from: l.now()}, by: p, outcome: unknown}
	s.sets = append(s.sets, one)
	number = len(s.sets)
	l.mu.Unlock()
	got, err := p.admin.do(http.MethodPost, "http://node/rates", "", map[string]string{
		"institution": s.institution, "currency": "USD", "buy": valueOf(number), "sell": "59.9",
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	one.to = l.now()
	one.outcome = l.came("rates", p, &got, err)
	if one.outcome != acknowledged {
		return number, got
	}
	var set struct{ Published *struct{ Buy string } }
	if err := got.into(&set); err != nil || set.Published == nil {
		l.wrong(strange, "node %d takes %s in and publishes nothing (%v): %s", p.number, valueOf(number), err, got.body)
	} else if shown, _ := numberOf(set.Published.Buy); s.before(shown, number) {
		l.wrong(risen, "node %d takes %s of %s in and publishes %s", p.number, valueOf(number), s.institution, set.Published.Buy)
	}
	return number, got
}

// before reports that one value was surely replaced by another one: it was acknowledged before the other was sent. The caller holds mu.
func (s *series) before(a, b int) bool {
	switch {
	case a == b || b == 0:
		return false
	case a == 0:
		return s.sets[b-1].outcome == acknowledged
	}
	return s.sets[a-1].outcome == acknowledged && s.sets[a-1].to < s.sets[b-1].from
}

// glance is what one caller has seen at one node, in order.
type glance struct {
	cut    time.Time // generatedAt of the newest answer
	values map[*series][]int
}

// page is an answer with rates.
type page struct {
	Data []struct{ InstitutionID, Currency, SourceID, Buy string }
	Meta struct{ GeneratedAt time.Time }
}

// saw holds a page against what was seen at the same node before, and what it had acknowledged itself when the page was asked for at from.
// The caller holds mu.
func (l *fleetLedger) saw(g *glance, p *peer, s *series, from time.Duration, shown *page) {
	if shown.Meta.GeneratedAt.Before(g.cut) {
		l.wrong(risen, "node %d answers with a page of %v after one of %v", p.number, shown.Meta.GeneratedAt, g.cut)
	}
	g.cut = shown.Meta.GeneratedAt
	if len(shown.Data) != 1 {
		l.wrong(lost, "node %d shows %d rates of %s", p.number, len(shown.Data), s.institution)
		return
	}
	number, _ := numberOf(shown.Data[0].Buy) // the value before all is 0
	if number > len(s.sets) {
		l.wrong(strange, "node %d shows %s of %s, which nobody has set", p.number, shown.Data[0].Buy, s.institution)
		return
	}
	if number > 0 {
		s.sets[number-1].shown = true
	}
	past := g.values[s]
	if len(past) == 0 || past[len(past)-1] != number {
		for i, old := range past {
			if old == number && i < len(past)-1 || i == len(past)-1 && s.before(number, old) {
				l.wrong(risen, "node %d shows %s of %s again after %v", p.number, valueOf(number), s.institution, past[max(0, len(past)-5):])
				break
			}
		}
		g.values[s] = append(past, number)
	}
	for i := len(s.sets) - 1; i >= 0; i-- {
		if one := s.sets[i]; one.by == p && one.outcome == acknowledged && one.to < from {
			if s.before(number, i+1) {
				l.wrong(risen, "node %d shows %s of %s, although it had acknowledged %s before", p.number, valueOf(number), s.institution, valueOf(i+1))
			}
			return
		}
	}
}

// request is a data request under way.
type request struct {
	by   *holder // nil: without a key
	key  *heldKey
	want *series
	at   *peer
	seen *glance
}

// ask asks a node for a rate.
func (l *fleetLedger) ask(c *caller, r request) {
	secret, from := "", l.now()
	if r.key != nil {
		secret = r.key.secret
	}
	got, err := c.do(http.MethodGet, r.at.url+"/v1/rates?currency=USD&institution="+r.want.institution, secret, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	to := l.now()
	what := "reads"
	if r.key != nil {
		what = "keyed reads"
	}
	if l.came(what, r.at, &got, err) != acknowledged {
		return
	}
	var shown page
	if err := got.into(&shown); err != nil {
		l.wrong(strange, "node %d answers %v: %s", r.at.number, err, got.body)
		return
	}
	l.saw(r.seen, r.at, r.want, from, &shown)
	if r.key != nil {
		l.admitted(r, &got, span{from, to})
	}
}

// admitted counts a request that a node has admitted for an account; the caller holds mu.
func (l *fleetLedger) admitted(r request, got *answer, s span) {
	day, _, ok := got.windows()
	switch {
	case !ok:
		l.wrong(strange, "node %d gives a good answer without limits: %v", r.at.number, got.header)
		return
	case day.limit == clusterDay: // to the node the caller has no key: it knows it not yet, or not any more
		if r.key.asked == 0 {
			l.stray++
		}
		return
	}
	if k := r.key; k.revoked != nil && k.ended.to < s.from {
		if k.revoked == r.at {
			l.wrong(accepted, "node %d admits key %s, the revocation of which it had acknowledged", r.at.number, k.id)
		}
		l.late = max(l.late, s.from-k.ended.to)
	}
	h := r.by
	h.stays = append(h.stays, s)
	if date := engine.DateOf(l.began.Add(s.from)); date == engine.DateOf(l.began.Add(s.to)) {
		h.days[date]++
		if h.days[date] > h.day {
			l.wrong(granted, "%s was admitted %d times on %v, %d are allowed", h.email, h.days[date], date, h.day)
		}
	}
}

// writtenAfter is when the first rate was acknowledged that was sent after a moment.
func (l *fleetLedger) writtenAfter(moment time.Duration) (time.Duration, bool) {
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

//go:build faults

package cmd

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// violation is a kind of broken promise.
type violation string

const (
	lostWrite       violation = "lost"      // an acknowledged change is missing, or nodes differ
	overGranted     violation = "granted"   // more was admitted than the limit, or a count is below what was admitted
	wronglyAccepted violation = "accepted"  // a revoked key, a suspended account, a third active key or a used code was accepted
	overForfeited   violation = "forfeited" // a crash cost an account more than a lease
	wentBack        violation = "risen"     // Remaining rose within a day, or an older rate followed a newer one
	unexplained     violation = "strange"   // an answer without explanation
	twoOwners       violation = "owners"    // two nodes collect at the same time
	misused         violation = "misused"   // a wrong command was carried out
)

// violationsKept bounds the descriptions; all violations are counted.
const violationsKept = 20

// Outcomes of an operation, as far as its client knows.
const (
	acknowledged = iota
	refused      // certainly not executed
	unknown      // may have been executed, or may still be
	outcomes
)

// interval is the duration of an operation, relative to the start of the checker: it took effect at some time in
// between.
type interval struct{ from, to time.Duration }

// endpoint is a node as its clients reach it, over all its processes. A single node is the only one.
type endpoint struct {
	number int
	url    string
	admin  *httpClient
}

// checker records what the clients of a service know: what was acknowledged, and what may have been stored although
// no answer came. It outlives every node, and compares their answers under load, after a start, and at the end. With
// a single node it also compares every answer with the one before, and remaining quotas with what was admitted. mu
// guards all fields below it.
type checker struct {
	mu             sync.Mutex
	startedAt      time.Time
	limits         limits // of a single node
	auditor        string // key for requests of the check, if data requires one
	accounts       []*trackedAccount
	series         []*series
	day            engine.Date // on which the accounts' counts began
	crashing       bool        // a node is being crashed: changes answered with 5xx may have been stored
	stoppedInOrder bool        // it has returned unspent leases

	counts        map[string]*[outcomes]int
	reasons       map[string]int // of rejections, by operation and error code
	violations    map[violation]int
	messages      []string
	checks        int           // facts checked after a start
	raced         int           // forfeited by requests that were rejected while they waited: see trackedAccount.raced
	unknownKey    int           // requests whose key a node did not know yet
	revocationLag time.Duration // longest time for which another node accepted a revoked key
	codeTrials    int           // codes tried at several nodes at once
}

// limits are the quotas of a single node; zero is a cluster, whose accounts have their own.
type limits struct {
	day, minute, lease int
}

func (x limits) args() []string {
	return []string{"--quota-day", strconv.Itoa(x.day), "--quota-minute", strconv.Itoa(x.minute), "--lease", strconv.Itoa(x.lease)}
}

// trackedAccount is an account as its clients know it.
type trackedAccount struct {
	email, session string
	sessionStart   time.Time
	day, minute    int // the highest limits that it had, or was about to have
	keys           []*accountKey
	touched        bool // keys were changed, or may have been, since the last check
	suspended      bool // acknowledged
	suspending     bool // a change of that is in progress, or was when the node died
	changes        int  // of keys and suspension, started and ended
	days           map[engine.Date]int
	admissions     []interval // admitted requests, except those without a limit per minute

	// With a single node only:
	spentAtStart int // spent on the day, as reported by the node after its start
	admitted     int // acknowledged since then
	underway     int // requests in progress
	inDoubt      int // requests in progress when the node died
	remainingMin int // lowest Remaining of the day in an answer
	// raced counts requests to this process whose key was revoked, or whose account was suspended, while they were in
	// progress. One that waited for its lease is rejected when that is in the log, and a crash before the next
	// request forfeits it. With leases of one that is more than what was in flight, so it is counted separately.
	raced int
}

// accountKey is a key, from its request on.
type accountKey struct {
	name, id, secret string
	made             interval
	outcome          int
	asked            int       // revocations that may have had an effect
	ended            interval  // the revocation: from is when the first of these was sent
	revoked          *endpoint // node that acknowledged or showed it
	touched          bool
}

// seriesValue is one value of a series. Each is sent once.
type seriesValue struct {
	interval
	by      *endpoint
	outcome int
	decided bool // it took effect before its end, or never will
	shown   bool // a node has shown it
}

// series is the rate of one institution: its values are numbered from 1, and 0 is whatever was there before.
type series struct {
	institution string
	values      []*seriesValue
	seen        []int // during a check, by page
}

// valueOf formats a number as a rate.
func valueOf(number int) string { return fmt.Sprintf("58.%07d", number) }

// numberOf parses it; 0 and false for any other text.
func numberOf(text string) (int, bool) {
	digits, is := strings.CutPrefix(text, "58.")
	number, err := strconv.Atoi(digits)
	if !is || err != nil || len(digits) != 7 {
		return 0, false
	}
	return number, true
}

// newChecker is empty.
func newChecker(x limits) *checker {
	return &checker{
		limits: x, startedAt: time.Now(), day: engine.DateOf(time.Now()),
		counts: map[string]*[outcomes]int{}, reasons: map[string]int{}, violations: map[violation]int{},
	}
}

// newAccount adds an account without a session.
func (l *checker) newAccount(email string, day, minute int) *trackedAccount {
	a := &trackedAccount{email: email, day: day, minute: minute, remainingMin: day + 1, days: map[engine.Date]int{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accounts = append(l.accounts, a)
	return a
}

// publishing adds a series for each of the first institutions that publish rates.
func (l *checker) publishing(most int) {
	for _, institution := range engine.DefaultCatalogue().Institutions() {
		if institution.Active && institution.Type != engine.Official && len(l.series) < most {
			l.series = append(l.series, &series{institution: institution.ID})
		}
	}
}

func (l *checker) now() time.Duration { return time.Since(l.startedAt) }

// singleNode reports whether there is only one node.
func (l *checker) singleNode() bool { return l.limits.lease > 0 }

// end records that the node is about to stop.
func (l *checker) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.crashing = true
}

// violate records a violation; the caller holds mu.
func (l *checker) violate(kind violation, format string, args ...any) {
	l.violations[kind]++
	if len(l.messages) < violationsKept {
		l.messages = append(l.messages, fmt.Sprintf("%s, after %.1f s: ", kind, l.now().Seconds())+fmt.Sprintf(format, args...))
	}
}

// violationCount counts the violations of some kinds, or of all kinds without arguments.
func (l *checker) violationCount(kinds ...violation) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := 0
	for kind, count := range l.violations {
		if len(kinds) == 0 || slices.Contains(kinds, kind) {
			sum += count
		}
	}
	return sum
}

// report fails the test for each violation.
func (l *checker) report(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, words := range l.messages {
		t.Error(words)
	}
}

// count returns how often an operation, or any operation if what is "", had an outcome.
func (l *checker) count(what string, outcome int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := 0
	for of, c := range l.counts {
		if what == "" || what == of {
			sum += c[outcome]
		}
	}
	return sum
}

func (l *checker) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts, reasons []string
	for _, what := range slices.Sorted(maps.Keys(l.counts)) {
		c := l.counts[what]
		parts = append(parts, fmt.Sprintf("%d/%d/%d %s", c[acknowledged], c[refused], c[unknown], what))
	}
	for _, why := range slices.Sorted(maps.Keys(l.reasons)) {
		reasons = append(reasons, fmt.Sprintf("%d %s", l.reasons[why], why))
	}
	b := l.violations
	text := fmt.Sprintf("acknowledged/refused/unknown: %s (refused: %s); %d facts checked: %d lost, %d over-granted, %d wrongly accepted, "+
		"%d forfeited beyond a lease, %d older than seen, %d strange, %d with two owners, %d misused",
		strings.Join(parts, ", "), strings.Join(reasons, ", "), l.checks, b[lostWrite], b[overGranted], b[wronglyAccepted], b[overForfeited], b[wentBack], b[unexplained], b[twoOwners], b[misused])
	if l.singleNode() {
		return text + fmt.Sprintf("; %d forfeited by requests that were refused while they waited for a lease of one", l.raced)
	}
	return text + fmt.Sprintf("; %d requests came to a node before their key; a revoked key was good elsewhere for at most %d ms", l.unknownKey, l.revocationLag.Milliseconds())
}

// classify returns what a client knows of an operation after its answer; odd reports an answer without explanation.
func classify(got *answer, err error) (outcome int, odd bool) {
	switch {
	case err != nil && got.unsent():
		return refused, false
	case err != nil:
		return unknown, got.status == http.StatusInternalServerError
	case got.good():
		return acknowledged, false
	case got.status == http.StatusServiceUnavailable && (got.code == "read_only" || got.code == "no_majority"):
		return refused, false
	case got.status == http.StatusServiceUnavailable:
		return unknown, false // the node stops, or the answer took too long
	case got.status == http.StatusInternalServerError && strings.Contains(got.body, "may or may not"):
		return unknown, false
	case got.status >= 500:
		return unknown, true
	}
	return refused, false
}

// countOutcome counts an operation and returns its outcome; the caller holds mu.
func (l *checker) countOutcome(what string, m *endpoint, got *answer, err error) int {
	outcome, odd := classify(got, err)
	switch {
	case l.crashing && got.status >= 500:
		outcome, odd = unknown, false
	case l.singleNode() && outcome == refused && got.status > 0: // its client can explain a rejection by a single node
		data := what == "keyed reads"
		odd = !(data && got.status == http.StatusUnauthorized || data && got.status == http.StatusTooManyRequests ||
			what == "keys" && (got.status == http.StatusConflict || got.code == string(engine.CodeAccountSuspended)) || !data && got.code == "read_only")
	}
	if l.counts[what] == nil {
		l.counts[what] = &[outcomes]int{}
	}
	l.counts[what][outcome]++
	if outcome == refused {
		l.reasons[what+" "+cmp.Or(got.code, "unsent")]++
	}
	if odd {
		l.violate(unexplained, "%s at node %d: %d %s, %v: %.300s", what, m.number, got.status, got.code, err, got.body)
	}
	return outcome
}

// clientView is what one client has seen at one node, in order.
type clientView struct {
	generatedAt time.Time // of the newest answer
	values      map[*series][]int
}

func newClientView() *clientView { return &clientView{values: map[*series][]int{}} }

// page is a response with rates.
type page struct {
	Data []struct{ InstitutionID, SourceID, Buy string }
	Meta struct{ GeneratedAt time.Time }
}

// request is a data request in progress: what was known when it was sent.
type request struct {
	by   *trackedAccount // nil: without a key
	key  *accountKey
	want *series
	at   *endpoint
	view *clientView

	from         time.Duration
	remainingMin int
	changes      int
	revoked      bool
	suspended    bool // its account is suspended: it must be rejected, unless something changes meanwhile
	entitled     bool // its key is good, unless something changes meanwhile
}

// ask requests a rate from a node.
func (l *checker) ask(c *httpClient, r request) {
	secret := ""
	l.beforeRequest(&r)
	if r.key != nil {
		secret = r.key.secret
	}
	got, err := c.do(http.MethodGet, r.at.url+"/v1/rates?currency=USD&institution="+r.want.institution, secret, nil)
	l.afterRequest(&r, &got, err)
}

// beforeRequest records that a request is about to be sent.
func (l *checker) beforeRequest(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.from = l.now()
	if r.by == nil {
		return
	}
	a, k := r.by, r.key
	r.remainingMin, r.changes, r.revoked = a.remainingMin, a.changes, k.revoked != nil
	r.suspended = a.suspended && !a.suspending
	r.entitled = k.asked == 0 && !a.suspended && !a.suspending
	if !r.revoked {
		a.underway++
	}
}

// afterRequest records the outcome of a request.
func (l *checker) afterRequest(r *request, got *answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what, to := "reads", l.now()
	if r.key != nil {
		what = "keyed reads"
	}
	outcome := l.countOutcome(what, r.at, got, err)
	if got.status == http.StatusOK {
		var shown page
		switch {
		case err != nil: // the headers arrived
		case got.decode(&shown) != nil:
			l.violate(unexplained, "node %d answers: %s", r.at.number, got.body)
		default:
			l.checkPage(r, &shown)
		}
	}
	if r.key == nil {
		return
	}
	a := r.by
	if !r.revoked {
		a.underway--
		a.inDoubt += got.resends()
	}
	switch {
	case got.status == http.StatusOK:
		l.admitted(r, got, interval{r.from, to})
	case !l.singleNode() || got.unsent():
	case outcome == unknown && (got.status == 0 || l.crashing):
		if !r.revoked {
			a.inDoubt++
		}
	case got.status == http.StatusUnauthorized:
		if !r.revoked && !r.suspended {
			a.raced++
		}
		if r.entitled && a.changes == r.changes {
			l.violate(lostWrite, "%s: its active key %s is refused: %s", a.email, r.key.id, got.code)
		}
	case got.code == "quota_exceeded" && a.spentAtStart+a.admitted+a.underway+a.inDoubt+1 < a.day:
		l.violate(unexplained, "%s is rejected for its quota after %d+%d of %d", a.email, a.spentAtStart, a.admitted, a.day)
	}
}

// checkPage compares a page with what the same node has shown and acknowledged before. The caller holds mu.
func (l *checker) checkPage(r *request, shown *page) {
	g, m, s := r.view, r.at, r.want
	if shown.Meta.GeneratedAt.Before(g.generatedAt) {
		l.violate(wentBack, "node %d answers with a page of %v after one of %v", m.number, shown.Meta.GeneratedAt, g.generatedAt)
	}
	g.generatedAt = shown.Meta.GeneratedAt
	if len(shown.Data) != 1 {
		l.violate(lostWrite, "node %d shows %d rates of %s", m.number, len(shown.Data), s.institution)
		return
	}
	number, _ := numberOf(shown.Data[0].Buy) // the value before the first is 0
	if number > len(s.values) {
		l.violate(unexplained, "node %d shows %s of %s, which was never set", m.number, shown.Data[0].Buy, s.institution)
		return
	}
	if number > 0 {
		s.values[number-1].shown = true
	}
	past := g.values[s]
	if len(past) == 0 || past[len(past)-1] != number {
		for i, old := range past {
			if old == number && i < len(past)-1 || i == len(past)-1 && s.before(number, old) {
				l.violate(wentBack, "node %d shows %s of %s again after %v", m.number, valueOf(number), s.institution, past[max(0, len(past)-5):])
				break
			}
		}
		g.values[s] = append(past, number)
	}
	for i := len(s.values) - 1; i >= 0; i-- {
		if one := s.values[i]; one.by == m && one.outcome == acknowledged && one.to < r.from {
			if s.before(number, i+1) {
				l.violate(wentBack, "node %d shows %s of %s, although it had acknowledged %s before", m.number, valueOf(number), s.institution, valueOf(i+1))
			}
			return
		}
	}
}

// admitted counts an admitted request and compares its headers with what was known. The caller holds mu.
func (l *checker) admitted(r *request, got *answer, s interval) {
	a, k := r.by, r.key
	tighter, ok := got.rateLimit()
	switch {
	case !ok:
		l.violate(unexplained, "node %d gives a good answer without limits: %v", r.at.number, got.header)
		return
	case !l.singleNode() && (tighter.limit == clusterDay || tighter.limit == clusterMinute): // the node does not know the key yet, or no longer
		if k.asked == 0 {
			l.unknownKey++
		}
		return
	case r.revoked && k.revoked != r.at: // another node may not know it yet
		l.revocationLag = max(l.revocationLag, s.from-k.ended.to)
	case r.revoked || r.suspended && a.changes == r.changes:
		l.violate(wronglyAccepted, "node %d admits %s with key %s (revoked: %v, suspended: %v)", r.at.number, a.email, k.id, r.revoked, r.suspended)
		return
	}
	at, end := engine.DateOf(l.startedAt.Add(s.from)), engine.DateOf(l.startedAt.Add(s.to))
	if l.singleNode() && tighter.limit == a.day { // else the minute has less left, and nothing is shown of the day
		if tighter.remaining >= r.remainingMin && at == l.day && end == l.day {
			l.violate(wentBack, "%s: %d requests remain, although %d did before it was sent", a.email, tighter.remaining, r.remainingMin)
		}
		a.remainingMin = min(a.remainingMin, tighter.remaining)
	}
	a.admitted++
	if a.minute < minuteFree {
		a.admissions = append(a.admissions, s)
	}
	if at == end {
		if a.days[at]++; a.days[at] > a.day {
			l.violate(overGranted, "%s was admitted %d times on %v, %d are allowed", a.email, a.days[at], at, a.day)
		}
	}
}

// minuteFree is a limit per minute that is never reached: for accounts with it admissions are not recorded.
const minuteFree = 1000

// countSessions records how many sessions a code has opened, after a number of wrong tries; must means that nothing
// prevented it.
func (l *checker) countSessions(email string, sessions, tries int, must bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case sessions > 1:
		l.violate(wronglyAccepted, "a code of %s opened %d sessions", email, sessions)
	case sessions == 1 && tries >= 5:
		l.violate(wronglyAccepted, "a code of %s opened a session after %d wrong tries", email, tries)
	case sessions == 0 && must:
		l.violate(lostWrite, "the code of %s opened no session", email)
	}
}

// writtenAfter returns when the first rate was acknowledged that was sent after a time.
func (l *checker) writtenAfter(moment time.Duration) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, found := time.Duration(0), false
	for _, s := range l.series {
		for i := len(s.values) - 1; i >= 0 && s.values[i].from > moment; i-- {
			if one := s.values[i]; one.outcome == acknowledged && (!found || one.to < first) {
				first, found = one.to, true
			}
		}
	}
	return first, found
}

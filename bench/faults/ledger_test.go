//go:build faults

package faults

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// breach is a kind of broken promise.
type breach string

const (
	lost      breach = "lost"      // something acknowledged is not there
	granted   breach = "granted"   // more was admitted than the limit, or a count fell behind what was admitted
	accepted  breach = "accepted"  // a revoked key, a suspended account or a third active key was let in
	forfeited breach = "forfeited" // a crash cost an account more than a lease
	risen     breach = "risen"     // Remaining rose within a day, or an older rate was answered after a newer one
	strange   breach = "strange"   // an answer that nothing explains
)

// breachesKept bounds how many are told in words; all are counted.
const breachesKept = 20

// ledger is what the callers of a node know: what was acknowledged, and what may have been kept although no answer came. It
// outlives the node, and after each start it is held against what the node says. Everything below is guarded by mu.
type ledger struct {
	mu      sync.Mutex
	terms   terms
	tenants []*tenant
	quotes  []*quote
	day     engine.Date // on which the counts below began
	dying   bool        // the node is being crashed: what it answers with 5xx may have been kept or not
	orderly bool        // it ended in order: it has given back what was leased and not spent
	tally   tally
	words   []string
}

// terms are the limits of the node that are checked.
type terms struct {
	day, minute, lease int
}

func (x terms) args() []string {
	return []string{"--quota-day", strconv.Itoa(x.day), "--quota-minute", strconv.Itoa(x.minute), "--lease", strconv.Itoa(x.lease)}
}

// tally counts what was acknowledged, and what was broken.
type tally struct {
	keys, revocations, suspensions, rates, requests int
	refused                                         int // with a good reason: a limit, a revoked key, a suspension
	open                                            int // in flight when the node died
	checks                                          int // facts that were held against the node after a start
	raced                                           int // forfeited by requests that were refused while they waited: see tenant.raced
	breaches                                        map[breach]int
}

// add sums up.
func (x *tally) add(y *tally) {
	x.keys, x.revocations, x.suspensions = x.keys+y.keys, x.revocations+y.revocations, x.suspensions+y.suspensions
	x.rates, x.requests, x.refused = x.rates+y.rates, x.requests+y.requests, x.refused+y.refused
	x.open, x.checks, x.raced = x.open+y.open, x.checks+y.checks, x.raced+y.raced
	if x.breaches == nil {
		x.breaches = map[breach]int{}
	}
	for kind, count := range y.breaches {
		x.breaches[kind] += count
	}
}

func (x *tally) String() string {
	b := x.breaches
	return fmt.Sprintf("acknowledged %d keys, %d revocations, %d suspensions, %d rates, %d requests; %d refused, %d in flight at a crash; "+
		"%d facts checked: %d lost, %d over-granted, %d wrongly accepted, %d forfeited beyond a lease, %d risen, %d strange; "+
		"%d forfeited by requests that were refused while they waited for a lease of one",
		x.keys, x.revocations, x.suspensions, x.rates, x.requests, x.refused, x.open, x.checks,
		b[lost], b[granted], b[accepted], b[forfeited], b[risen], b[strange], x.raced)
}

// tenant is an account as its callers know it. One worker changes its keys; everybody asks with them.
type tenant struct {
	email, session string
	keys           []*ledgerKey
	doubts         map[string]bool // names of keys whose creation was not answered
	touched        bool            // keys were changed, or tried to, since they were looked at last
	suspended      bool            // acknowledged
	suspending     bool            // a change of that is under way, or was when the node died
	changes        int             // of keys and suspension, begun and ended

	base     int // spent on the day, as the node told after its start
	admitted int // acknowledged since then
	open     int // requests under way
	maybe    int // requests that were under way when the node died
	// raced are requests of this life whose key was revoked, or whose account was suspended, while they were under way. One that
	// waited for its lease is refused when that is in the log, and what it leased is there for the next request; a crash before
	// that forfeits it. With a lease of one that is more than what was in flight, so it is told apart, and counted.
	raced int
	total int // admitted on the day in all lives
	floor int // the lowest Remaining of the day that was answered
	stays []stay
}

// stay is the time of an admitted request as its caller knows it: admitted somewhere between sent and come.
type stay struct{ sent, come time.Time }

// ledgerKey is a key. A key of which only the id is known was created without an answer.
type ledgerKey struct {
	id, secret string
	asked      bool // its revocation was sent
	revoked    bool // and acknowledged, or seen
	touched    bool
}

// quote is what one institution publishes. Its values are numbered, and each is the number's own.
type quote struct {
	institution string
	asked       int   // the newest that was sent
	must        int   // the newest that was acknowledged, or seen
	seen        []int // during a check, by page
}

// valueOf is the decimal text of a number; numberOf reads it.
func valueOf(number int) string { return fmt.Sprintf("58.%07d", number) }

func numberOf(text string) (int, bool) {
	digits, is := strings.CutPrefix(text, "58.")
	number, err := strconv.Atoi(digits)
	return number, is && err == nil && len(digits) == 7
}

// newLedger is empty.
func newLedger(x terms) *ledger {
	return &ledger{terms: x, day: engine.DateOf(time.Now()), tally: tally{breaches: map[breach]int{}}}
}

// wrong notes a breach; the caller holds mu.
func (l *ledger) wrong(kind breach, format string, args ...any) {
	l.tally.breaches[kind]++
	if len(l.words) < breachesKept {
		l.words = append(l.words, string(kind)+": "+fmt.Sprintf(format, args...))
	}
}

// report fails the test for each breach.
func (l *ledger) report(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, words := range l.words {
		t.Error(words)
	}
}

// breaches is how many there are of some kinds, of all kinds without one.
func (l *ledger) breaches(kinds ...breach) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := 0
	for kind, count := range l.tally.breaches {
		for _, wanted := range kinds {
			if kind == wanted {
				sum += count
			}
		}
		if len(kinds) == 0 {
			sum += count
		}
	}
	return sum
}

// total is what was counted so far.
func (l *ledger) total() tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum tally
	sum.add(&l.tally)
	return sum
}

// ticket is a data request under way: what was known when it was sent.
type ticket struct {
	tenant   *tenant
	key      *ledgerKey
	quote    *quote
	must     int // of the quote
	floor    int
	changes  int
	revoked  bool // so it must be refused
	barred   bool // its account is suspended: it must be refused, unless something changes meanwhile
	entitled bool // its key is good, unless something changes meanwhile
	sent     time.Time
}

// ask notes that a request is about to be sent.
func (l *ledger) ask(tn *tenant, key *ledgerKey, q *quote) *ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &ticket{
		tenant: tn, key: key, quote: q, must: q.must, floor: tn.floor, changes: tn.changes,
		revoked: key.revoked, barred: tn.suspended && !tn.suspending,
		entitled: !key.asked && !key.revoked && !tn.suspended && !tn.suspending, sent: time.Now(),
	}
	if !k.revoked {
		tn.open++
	}
	return k
}

// told notes how a request came out.
func (l *ledger) told(k *ticket, got *answer, err error) {
	come := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	tn := k.tenant
	if !k.revoked {
		tn.open--
		tn.maybe += got.again()
	}
	switch {
	case got.unsent():
	case got.status == 0 && err != nil, l.dying && got.status >= 500:
		if !k.revoked {
			tn.maybe++
			l.tally.open++
		}
	case got.status == http.StatusOK:
		l.admitted(k, got, err == nil, come)
	case got.status == http.StatusUnauthorized:
		l.tally.refused++
		if !k.revoked && !k.barred {
			tn.raced++
		}
		if k.entitled && tn.changes == k.changes {
			l.wrong(lost, "%s: its active key %s is refused: %s", tn.email, k.key.id, got.code)
		}
	case got.status == http.StatusTooManyRequests:
		l.tally.refused++
		if got.code == "quota_exceeded" && tn.base+tn.admitted+tn.open+tn.maybe+1 < l.terms.day {
			l.wrong(strange, "%s is told that its quota is used up after %d+%d of %d", tn.email, tn.base, tn.admitted, l.terms.day)
		}
	case got.status == http.StatusServiceUnavailable && (got.code == "overloaded" || got.code == "data_unavailable"):
		l.tally.refused++
	default:
		l.wrong(strange, "a request is answered %d %s, %v: %.200s", got.status, got.code, err, got.body)
	}
}

// admitted counts a good answer and holds it against what was known; whole tells that its body came.
func (l *ledger) admitted(k *ticket, got *answer, whole bool, come time.Time) {
	tn := k.tenant
	l.tally.requests++
	if k.revoked || k.barred && tn.changes == k.changes {
		l.wrong(accepted, "%s: a request is admitted with key %s (revoked: %v, suspended: %v)", tn.email, k.key.id, k.revoked, k.barred)
		return
	}
	tn.admitted++
	tn.total++
	if l.terms.minute < 1000 {
		tn.stays = append(tn.stays, stay{k.sent, come})
	}
	day, minute, ok := got.windows()
	tighter, is := got.tighter()
	switch {
	case !ok || !is:
		l.wrong(strange, "a good answer without limits: %v", got.header)
	case day.remaining >= k.floor && engine.DateOf(k.sent) == l.day && engine.DateOf(come) == l.day:
		l.wrong(risen, "%s: %d requests remain, although %d did before it was sent", tn.email, day.remaining, k.floor)
	case tighter.remaining != min(day.remaining, minute.remaining):
		l.wrong(strange, "X-RateLimit-Remaining is %d, the windows have %d and %d", tighter.remaining, day.remaining, minute.remaining)
	}
	if ok {
		tn.floor = min(tn.floor, day.remaining)
	}
	if tn.total > l.terms.day {
		l.wrong(granted, "%s was admitted %d times on one day, %d are allowed", tn.email, tn.total, l.terms.day)
	}
	if whole {
		l.shown(k.quote, k.must, string(got.body))
	}
}

// shown wants a rate in a body that is not older than what was known when it was asked for.
func (l *ledger) shown(q *quote, must int, body string) {
	_, rest, found := strings.Cut(body, `"buy":"`)
	text, _, _ := strings.Cut(rest, `"`)
	number, is := numberOf(text)
	if must > 0 && (!found || !is || number < must) {
		l.wrong(risen, "%s is shown as %q, although %s had been acknowledged", q.institution, text, valueOf(must))
	}
	if is && number > q.asked {
		l.wrong(strange, "%s is shown as %q, which nobody has published", q.institution, text)
	}
}

// crowded finds the most requests of one account that were surely admitted within a minute.
func (tn *tenant) crowded() int {
	most := 0
	for i := range tn.stays {
		inside := 0
		for j := range tn.stays {
			if !tn.stays[j].sent.Before(tn.stays[i].sent) && tn.stays[j].come.Sub(tn.stays[i].sent) < engine.MinuteSpan {
				inside++
			}
		}
		most = max(most, inside)
	}
	return most
}

// minutes holds what each account was admitted against the limit of a minute.
func (l *ledger) minutes() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, tn := range l.tenants {
		if most := tn.crowded(); most > l.terms.minute {
			l.wrong(granted, "%s was admitted %d times within a minute, %d are allowed", tn.email, most, l.terms.minute)
		}
	}
}

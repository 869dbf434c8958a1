package engine

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// counter is an account as the world drives it; a control puts a planted bug in between.
type counter interface {
	Admit(Digest, Moment, Terms) (Verdict, Need)
	NextLease(Digest, Moment, Terms, int) *Leased
	Refund(Moment)
	Return(Moment) *Returned
	Resume(Moment)
	Apply(AccountEvent)
	real() *Account
}

func (a *Account) real() *Account { return a }

// grant is an admission as its caller saw it.
type grant struct {
	real     time.Duration // true time since the world began
	at       Moment
	day      Date
	run      int // process that admitted it
	refunded bool
}

// quotaWorld is one account over many processes, with true time, a wall clock that is wrong, a log, and chance. It holds what callers
// saw against the limits; what it finds first stands in fault.
type quotaWorld struct {
	pick       func(n int) int // below n
	plant      func(*Account) counter
	forgetful  bool   // planted: leases are granted and not logged
	only       string // faults of a control
	terms      Terms
	start      time.Time
	real       time.Duration
	offset     time.Duration // of the wall clock
	began      time.Duration // of this process, in true time
	origin     time.Duration // of this process, in steady time
	newest     time.Duration // steady time in the log, of this account or another
	run        int
	log        []AccountEvent
	flight     *Leased
	waiting    int
	widest     int // lease of this process
	account    counter
	granted    []grant
	forfeited  map[Date]int
	latest     Date      // day that was leased from: the day that counts is never before it
	resets     time.Time // of the day, as a caller saw it last
	daysLeased map[Date]bool
	admitted   int // over all
	crashes    int
	aside      int
	fault      string
}

var worldKey = SecretOf("the key of the world").Digest()

func newQuotaWorld(pick func(int) int, plant func(*Account) counter) *quotaWorld {
	starts := []string{"2026-06-17T16:00:00Z", "2026-06-17T03:58:50Z", "2000-10-29T05:59:00Z", "2000-12-03T05:30:00Z"}
	w := &quotaWorld{
		pick: pick, plant: plant, start: at(starts[pick(len(starts))]),
		terms:     Terms{Allowance{1 + pick(60), 1 + pick(9)}, []int{1, 2, 3, 5, 16}[pick(5)]},
		forfeited: map[Date]int{}, daysLeased: map[Date]bool{},
	}
	w.log = []AccountEvent{
		&AccountCreated{1, idOf("a@b.do"), w.start}, &KeyCreated{1, KeyRecord{ID: "k1", Digest: worldKey, CreatedAt: w.start}},
	}
	w.restart()
	return w
}

func (w *quotaWorld) now() Moment {
	return Moment{Wall: w.start.Add(w.real + w.offset), Steady: w.origin + w.real - w.began}
}

// today is the day that counts: that of the wall clock, but never one before a day that was leased from.
func (w *quotaWorld) today() Date { return max(DateOf(w.now().Wall), w.latest) }

func (w *quotaWorld) fail(format string, args ...any) {
	if w.fault == "" && strings.Contains(format, w.only) {
		w.fault = fmt.Sprintf("at %s, terms %v: ", w.real, w.terms) + fmt.Sprintf(format, args...)
	}
}

// replay is the account that the log tells, by way of a snapshot after so many events.
func (w *quotaWorld) replay(cut int) *Account {
	account := NewAccount(1)
	for i, event := range w.log {
		if i == cut {
			account = RestoreAccount(account.State())
		}
		account.Apply(event)
	}
	return account
}

// restart begins a process on the log.
func (w *quotaWorld) restart() {
	account := w.replay(w.pick(len(w.log)))
	if whole := w.replay(-1); !reflect.DeepEqual(account.State(), whole.State()) {
		w.fail("a snapshot and the events behind it give %+v, all events %+v", account.State(), whole.State())
	}
	w.flight, w.waiting, w.widest, w.latest = nil, 0, 0, 0
	for _, event := range w.log {
		if lease, is := event.(*Leased); is {
			w.latest = max(w.latest, lease.Day)
		}
	}
	w.run++
	w.began, w.origin = w.real, w.newest
	w.account = w.plant(account)
	w.account.Resume(w.now())
}

// charged is what callers were charged for on a day.
func (w *quotaWorld) charged(day Date) int {
	sum := 0
	for _, g := range w.granted {
		if g.day == day && !g.refunded {
			sum++
		}
	}
	return sum
}

// lately is what was charged in the last 60 seconds of true time.
func (w *quotaWorld) lately() int {
	sum := 0
	for _, g := range w.granted {
		if !g.refunded && w.real-g.real < time.Minute {
			sum++
		}
	}
	return sum
}

// ask is one request; false when it has to wait for a lease.
func (w *quotaWorld) ask() bool {
	now := w.now()
	verdict, need := w.account.Admit(worldKey, now, w.terms)
	if need == LeaseNeeded {
		return false
	}
	day := w.today()
	if verdict.Day.Reset.Before(w.resets) && w.only == "" {
		w.fail("the day's window went back from %s to %s", w.resets, verdict.Day.Reset)
	}
	if !verdict.Admitted {
		w.judgeRefusal(verdict, day)
		return true
	}
	w.admitted++
	w.resets = verdict.Day.Reset
	now.Day = day
	w.granted = append(w.granted, grant{w.real, now, day, w.run, false})
	if n := w.lately(); n > w.terms.Allowance.Minute {
		w.fail("%d admitted in a minute", n)
	}
	if n := w.charged(day); n > w.terms.Allowance.Day {
		w.fail("%d admitted on %s", n, day)
	}
	if verdict.Day.Remaining < 0 || verdict.Minute.Remaining < 0 || verdict.RetryAfter != 0 || verdict.Violated != "" {
		w.fail("admitted with %+v", verdict)
	}
	w.prepare()
	return true
}

// judgeRefusal allows a refusal for a limit that is reached, and for what a crash may cost.
func (w *quotaWorld) judgeRefusal(verdict Verdict, day Date) {
	full := w.charged(day)+w.forfeited[day] >= w.terms.Allowance.Day || len(w.daysLeased) > daysKept
	crowded := w.lately() >= w.terms.Allowance.Minute || w.run > 1 && w.real-w.began < time.Minute
	switch {
	case verdict.Violated == CodeQuotaExceeded && !full:
		w.fail("quota exceeded with %d charged and %d forfeited on %s", w.charged(day), w.forfeited[day], day)
	case verdict.Violated == CodeRateLimited && !crowded:
		w.fail("rate limited with %d in the minute", w.lately())
	case verdict.RetryAfter <= 0:
		w.fail("refused with %+v", verdict)
	}
}

// prepare sends the lease that is needed on its way.
func (w *quotaWorld) prepare() {
	if w.flight != nil {
		return
	}
	if w.flight = w.account.NextLease(worldKey, w.now(), w.terms, w.waiting); w.flight != nil {
		w.widest = max(w.widest, w.flight.Count)
	}
	if w.flight != nil || w.waiting == 0 {
		return
	}
	if w.serve(); w.waiting > 0 && w.flight == nil {
		w.fail("%d wait for a lease that nobody asks for", w.waiting)
		w.waiting = 0
	}
}

func (w *quotaWorld) request() {
	if w.ask() {
		return
	}
	w.waiting++
	w.prepare()
}

// settle makes the lease in flight durable and admits who waits for it.
func (w *quotaWorld) settle() {
	if w.flight == nil {
		return
	}
	w.append(w.flight, !w.forgetful)
	w.account.Apply(w.flight)
	w.latest = max(w.latest, w.flight.Day)
	w.flight = nil
	w.serve()
	if w.waiting > 0 {
		w.prepare()
	}
}

// serve asks again for those that wait, until one has to wait on.
func (w *quotaWorld) serve() {
	for w.waiting > 0 {
		if w.waiting--; !w.ask() {
			w.waiting++
			return
		}
	}
}

func (w *quotaWorld) append(event AccountEvent, durable bool) {
	if !durable {
		return
	}
	switch e := event.(type) {
	case *Leased:
		w.newest = max(w.newest, e.Steady)
		w.daysLeased[e.Day] = true
	case *Returned:
		w.newest = max(w.newest, e.Steady)
	}
	w.log = append(w.log, event)
}

// crash loses the process; the lease in flight may have become durable.
func (w *quotaWorld) crash() {
	w.crashes++
	if w.flight != nil && w.pick(2) == 0 {
		w.append(w.flight, !w.forgetful)
	}
	allowed := w.terms.Lease
	if allowed == 1 {
		allowed = max(1, w.widest) // exact leases are as large as what waits for them
	}
	refunded := map[Date]int{}
	for _, c := range w.account.real().days.counts {
		refunded[c.day] = c.refunded
	}
	w.pass()
	w.restart()
	for _, c := range w.account.real().days.counts {
		lost := c.leased - w.charged(c.day) - w.forfeited[c.day]
		if lost > allowed+refunded[c.day] {
			w.fail("a crash cost %d of %s", lost, c.day)
		}
		w.forfeited[c.day] = max(w.forfeited[c.day], w.forfeited[c.day]+lost)
	}
}

// stop ends the process in order and begins another one.
func (w *quotaWorld) stop() {
	for w.flight != nil && w.fault == "" {
		w.settle()
	}
	if live := w.account.real().State(); !w.forgetful && !reflect.DeepEqual(live, w.replay(-1).State()) {
		w.fail("live state %+v, replayed %+v", live, w.replay(-1).State())
	}
	today := w.today()
	if event := w.account.Return(w.now()); event != nil {
		w.append(event, true)
	}
	w.pass()
	w.restart()
	for _, c := range w.account.real().days.counts {
		lost := c.leased - w.charged(c.day) - w.forfeited[c.day]
		if c.day == today && lost > 0 {
			w.fail("a clean stop cost %d of %s", lost, c.day)
		}
		w.forfeited[c.day] += max(0, lost)
	}
}

// refund takes back a young admission of this process.
func (w *quotaWorld) refund() {
	for try := len(w.granted) - 1 - w.pick(4); try >= 0; try-- {
		g := &w.granted[try]
		if w.real-g.real > 90*time.Second || g.run != w.run {
			return
		}
		if !g.refunded {
			g.refunded = true
			w.account.Refund(g.at)
			return
		}
	}
}

// putAside takes an idle account out of memory and back in.
func (w *quotaWorld) putAside() {
	account := w.account.real()
	if w.flight != nil || !account.Idle(w.now()) {
		return
	}
	w.aside++
	again := RestoreAccount(account.State())
	again.TakeUp(account.PutAside())
	if !reflect.DeepEqual(again.Record(), account.Record()) || !reflect.DeepEqual(again.PutAside(), account.PutAside()) {
		w.fail("taken up as %+v, put aside as %+v", again, account)
	}
	*account = *again
}

// pass lets true time go by.
func (w *quotaWorld) pass() {
	spans := []time.Duration{
		0, time.Millisecond, 300 * time.Millisecond, time.Second, time.Second, 7 * time.Second, 20 * time.Second, 20 * time.Second, 31 * time.Second,
		time.Minute - time.Millisecond, time.Minute, 61 * time.Second, 10 * time.Minute, 3 * time.Hour, 13 * time.Hour,
	}
	w.real += spans[w.pick(len(spans))]
}

func (w *quotaWorld) stepClock() {
	steps := []time.Duration{time.Second, 61 * time.Second, time.Hour, 25 * time.Hour, 40 * 24 * time.Hour}
	w.offset += steps[w.pick(len(steps))] * time.Duration(1-2*w.pick(2))
}

func (w *quotaWorld) step() {
	switch kind := w.pick(24); {
	case kind < 10:
		for range 1 + w.pick(4) {
			w.request()
		}
	case kind < 14:
		w.settle()
	case kind < 18:
		w.pass()
	case kind < 20:
		w.refund()
	case kind == 20:
		w.stepClock()
	case kind == 21:
		w.newest = w.now().Steady // another account's event
		w.putAside()
	case kind == 22:
		w.crash()
	default:
		w.stop()
	}
}

// live runs so many steps or to the first fault.
func (w *quotaWorld) live(steps int) string {
	for range steps {
		if w.step(); w.fault != "" {
			break
		}
	}
	return w.fault
}

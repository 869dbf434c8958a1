package apitest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/client"
)

// dayStart is an hour before a midnight in Santo Domingo, so that a day has a midnight and three hours of the
// schedule.
var dayStart = time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC)

// Quotas of the day, small enough to be used up.
const (
	dayQuota    = 150
	dayMinute   = 25
	dayHours    = 24
	dayHoursRun = 3                            // of the fast test: a midnight, and the slot that was missed before the start
	dayLogIns   = 2                            // for one address: a network gets two of its e-mails a day
	forfeitMax  = 2 * account.LeaseSizeDefault // a crash forfeits at most the lease being spent and the next one
)

// daySimulation is a service over a day of simulated time: collectors, manual rates that expire, users who sign up and
// send requests, restarts and crashes, and a record of the answers.
type daySimulation struct {
	t        testing.TB
	srv      *Server
	random   *rand.Rand
	set      []*source.Definition
	mutation string

	mu       sync.Mutex
	quotes   map[string]acknowledgedQuote // newest acknowledged, by institution
	slots    map[string]int               // values accepted of a source, by source and slot
	failures []string

	collector func() // stops it
	clients   []*dayClient
	startedAt time.Time // of the last start
	crashed   map[engine.Date]bool
	published int // manual rates so far
	counts    dayCounts
}

// The planted bugs. Each is found within a day or two.
const (
	lostPublications = "the sink acknowledges what it throws away"
	generousQuota    = "the node grants twice what it promises"
	forgottenKeys    = "a revocation is answered and not made"
)

type acknowledgedQuote struct {
	sell    string
	expires time.Time // zero: not a manual rate
}

type dayCounts map[string]int

func (w *daySimulation) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, w.srv.Clock.Now().Format(time.RFC3339)+": "+fmt.Sprintf(format, args...))
}

// dayClient is a user of the service, with the answers it got.
type dayClient struct {
	http            *http.Client
	account         *client.Client
	key             *client.NewKey
	session         string
	email           string
	loggedIn        time.Time
	logIns          int
	admitted        []time.Time
	forfeited       map[engine.Date]int // by crashes, at most
	lowestRemaining map[engine.Date]int // last reported remainder
}

// Fetch implements collectors.Fetcher with a page in the form of the real one. Its values depend on the hour.
func (w *daySimulation) Fetch(ctx context.Context, d *source.Definition, _ int) (*source.Document, error) {
	timer := time.NewTimer(time.Second) // a site takes its time
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now := w.srv.Clock.Now()
	body := fmt.Sprintf(`{"data":{"attributes":{"exchangeRates":[{"currency":"USD","buyingRate":58.00,"sellingRate":59.%02d}]}}}`, 10+now.Hour())
	if d.ID == "popular-site" {
		body = fmt.Sprintf(`{"value":[{"DollarBuyRate":"58.10","DollarSellRate":"59.%02d"}]}`, 40+now.Hour())
	}
	return &source.Document{URL: "https://example.do/", ContentType: "application/json", Body: []byte(body), FetchedAt: now}, nil
}

// Observe implements collectors.Sink. It passes values to the node and records which were acknowledged.
func (w *daySimulation) Observe(list []engine.Refresh) (engine.Receipt, error) {
	var receipt engine.Receipt
	var err error
	if w.mutation == lostPublications {
		for _, r := range list {
			receipt.Accepted += len(r.Observations)
		}
	} else if err = w.srv.Do(func(s *Server) { receipt = s.Observe(list...) }); err != nil {
		return receipt, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range list {
		for _, o := range r.Observations {
			w.quotes[o.InstitutionID] = acknowledgedQuote{sell: o.Sell}
		}
		if i == len(list)-1 && receipt.Repeated == 0 {
			w.slots[r.SourceID+" "+r.Slot.UTC().Format(time.RFC3339)]++
		}
	}
	return receipt, nil
}

// collect starts the collectors, as a node does, with the state of its sources.
func (w *daySimulation) collect() {
	var done map[string]time.Time
	w.srv.must(w.srv.withLock(func() (err error) {
		done, err = w.srv.instance.system.Slots()
		return err
	}))
	ctx, cancel := context.WithCancel(context.Background())
	c := collectors.New(collectors.Config{
		Definitions: w.set, Fetcher: w, Sink: w, Clock: w.srv.Clock.Now, LastSlot: func(id string) time.Time { return done[id] },
		Random: rand.New(rand.NewPCG(w.random.Uint64(), 1)),
	})
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	w.collector = func() {
		cancel()
		if err := <-ended; err != nil {
			w.fail("collectors: %v", err)
		}
	}
}

// simulateDay simulates a day, or its first hours.
func simulateDay(t testing.TB, seed uint64, hours int, mutation string, counts dayCounts) *daySimulation {
	w := &daySimulation{
		t: t, random: rand.New(rand.NewPCG(7, seed)), mutation: mutation, quotes: map[string]acknowledgedQuote{}, slots: map[string]int{}, counts: counts,
		crashed: map[engine.Date]bool{},
	}
	catalogue := engine.DefaultCatalogue()
	for _, id := range []string{"bhd-site", "popular-site"} {
		definition, known := source.DefaultSet().Find(id)
		if !known {
			t.Fatalf("there is no source %s", id)
		}
		w.set, catalogue = append(w.set, definition), catalogue.WithSources(definition.Source())
	}
	quota := dayQuota
	if mutation == generousQuota {
		quota *= 2
	}
	began := now()
	clock := func() time.Time { return dayStart.Add(now().Sub(began)) }
	w.srv = Start(t, FollowClock(clock), Catalogue(catalogue), Lenient(), Quota(quota, dayMinute), KeysRequired())
	w.startedAt = w.srv.Clock.Now().Add(-time.Hour)
	w.srv.Publish(Rate{Institution: "banreservas", Currency: "USD", Buy: "58.00", Sell: "61.00"})
	w.collect()
	w.signUp()
	for w.srv.Clock.Now().Before(dayStart.Add(time.Duration(hours)*time.Hour)) && len(w.failures) == 0 {
		<-time.NewTimer(time.Duration(1+w.random.IntN(int(12*time.Minute/time.Second))) * time.Second).C
		w.act()
	}
	w.collector()
	w.checkSlots()
	return w
}

func (w *daySimulation) act() {
	switch kind := w.random.IntN(40); {
	case kind == 0 && len(w.clients) < 12:
		w.signUp()
	case kind == 1:
		w.restart(w.srv.Restart)
		w.counts["restarts"]++
	case kind == 2:
		w.crash()
	case kind == 3:
		w.rotate(w.clients[w.random.IntN(len(w.clients))])
	case kind < 8:
		w.publish()
	default:
		w.sendRequests(w.clients[w.random.IntN(len(w.clients))], 1+w.random.IntN(dayMinute+5))
	}
}

// restart stops the node with its collectors and starts it again.
func (w *daySimulation) restart(how func()) {
	w.collector()
	how()
	w.startedAt = w.srv.Clock.Now()
	w.collect()
}

func (w *daySimulation) crash() {
	for _, c := range w.clients {
		c.forfeited[engine.DateOf(w.srv.Clock.Now())] += forfeitMax
	}
	w.crashed[engine.DateOf(w.srv.Clock.Now())] = true
	w.restart(w.srv.Crash)
	w.counts["crashes"]++
}

func (w *daySimulation) publish() {
	w.published++
	at, sell := w.srv.Clock.Now(), fmt.Sprintf("60.%02d", w.published%100)
	expires := at.Add(time.Duration(1+w.random.IntN(180)) * time.Minute)
	receipt := w.srv.Observe(engine.Refresh{SourceID: "manual", ObservedAt: at, Observations: []engine.Observation{{
		InstitutionID: "scotiabank", Currency: "USD", Buy: "58.00", Sell: sell, ExpiresAt: expires,
	}}})
	if receipt.Accepted != 1 {
		w.fail("publication by hand: %+v", receipt)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quotes["scotiabank"] = acknowledgedQuote{sell, expires}
}

func (w *daySimulation) get(c *dayClient, path string, key *client.NewKey) (int, string, http.Header) {
	status, text, header, err := tryGet(w.t.Context(), w.t, c.http, w.srv.URL+path, "Authorization", "Bearer "+string(key.Secret))
	if err != nil {
		w.fail("%s: %v", path, err)
	}
	return status, text, header
}

func (w *daySimulation) signUp() {
	w.counts["sign-ups"]++
	c := &dayClient{
		http: w.srv.ClientFrom(fmt.Sprintf("198.51.100.%d", len(w.clients)+1)), email: fmt.Sprintf("caller%d@example.com", len(w.clients)),
		forfeited: map[engine.Date]int{}, lowestRemaining: map[engine.Date]int{},
	}
	c.account = accountClient(w.t, w.srv, c.http)
	if today := engine.DateOf(w.srv.Clock.Now()); w.crashed[today] {
		c.forfeited[today] = account.LeaseSizeDefault // the log does not say that the grant before the crash was not for it
	}
	w.logIn(c)
	w.newKey(c)
	w.clients = append(w.clients, c)
}

func (w *daySimulation) logIn(c *dayClient) {
	c.logIns, c.loggedIn = c.logIns+1, w.srv.Clock.Now()
	c.session = signIn(w.t, w.srv, c.account, c.email)
}

func (w *daySimulation) newKey(c *dayClient) {
	made, err := c.account.CreateKey(w.t.Context(), c.session, "")
	if err != nil {
		w.t.Fatalf("a key of %s: %v", c.email, err)
	}
	c.key = made
}

// rotate logs in again, creates a new key and revokes the old one, which is refused from then on.
func (w *daySimulation) rotate(c *dayClient) {
	// A code is not sent otherwise. The minute is of the monotonic clock, which stands still while no node runs.
	if now := w.srv.Clock.Now(); c.logIns == dayLogIns || now.Sub(c.loggedIn) <= account.CodeResendAfter || now.Sub(w.startedAt) <= account.CodeResendAfter {
		return
	}
	old := c.key
	w.logIn(c)
	w.newKey(c)
	if w.mutation != forgottenKeys {
		if err := c.account.RevokeKey(w.t.Context(), c.session, old.ID); err != nil {
			w.fail("revoke %s: %v", old.ID, err)
		}
	}
	w.counts["keys rotated"]++
	if w.random.IntN(3) == 0 {
		w.crash()
	}
	if status, body, _ := w.get(c, best, old); status != http.StatusUnauthorized {
		w.fail("a revoked key of %s: %d %s", c.email, status, body)
	}
}

// checkSlots checks that every slot of the day was collected once from each source.
func (w *daySimulation) checkSlots() {
	w.counts["slots published"] += len(w.slots)
	for key, times := range w.slots {
		if times != 1 {
			w.fail("%s was published %d times", key, times)
		}
	}
	want := len(w.set)
	if w.srv.Clock.Now().Sub(dayStart) >= dayHours*time.Hour {
		want *= 4
	}
	if len(w.failures) == 0 && len(w.slots) < want {
		w.fail("%d slots were published, want at least %d: %v", len(w.slots), want, w.slots)
	}
}

// checkDays simulates days, each in a bubble, checks that nothing went wrong and nothing is left, and adds to the
// counts.
func checkDays(t *testing.T, first, days, hours int, counts dayCounts) {
	t.Helper()
	for seed := first; seed < first+days && !t.Failed(); seed++ {
		before := goleak.IgnoreCurrent()
		synctest.Test(t, func(t *testing.T) {
			w := simulateDay(t, uint64(seed), hours, "", counts)
			for _, fault := range w.failures {
				t.Errorf("seed %d: %s", seed, fault)
			}
		})
		if err := goleak.Find(before); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestQ7_HoursOfTheWholeService checks over some hours that clients see what was published, quotas hold, revoked keys
// are refused, every slot is published once, and no goroutine is left. TestFaultsQ7_Days runs 200 days.
func TestQ7_HoursOfTheWholeService(t *testing.T) {
	counts := dayCounts{}
	checkDays(t, 1, 1, dayHoursRun, counts)
	t.Log(counts)
}

func TestQ7_Control(t *testing.T) {
	mustFindMutations(t, lostPublications)
}

func mustFindMutations(t *testing.T, mutations ...string) {
	t.Helper()
	for _, mutation := range mutations {
		t.Run(mutation, func(t *testing.T) {
			for seed := range uint64(4) {
				caught := ""
				synctest.Test(t, func(t *testing.T) {
					if w := simulateDay(t, seed, dayHours, mutation, dayCounts{}); len(w.failures) > 0 {
						caught = w.failures[0]
					}
				})
				if caught != "" {
					t.Logf("caught on day %d: %s", seed, caught)
					return
				}
			}
			t.Error("not caught")
		})
	}
}

func (w *daySimulation) sendRequests(c *dayClient, requests int) {
	for range requests {
		path := []string{best, "/v1/rates?currency=USD", "/v1/rates", "/v1/rates?institution=bhd"}[w.random.IntN(4)]
		status, body, header := w.get(c, path, c.key)
		w.counts["requests"]++
		at := w.srv.Clock.Now()
		switch status {
		case http.StatusOK:
			c.admitted = append(c.admitted, at)
			w.checkRates(path, body, at)
		case http.StatusTooManyRequests:
			w.counts["refused"]++
		default:
			w.fail("%s: %d %s", path, status, body)
			return
		}
		w.checkQuota(c, status == http.StatusOK, at, header)
	}
}

func (c *dayClient) charged(at time.Time) (day, minute int) {
	for _, one := range c.admitted {
		if engine.DateOf(one) == engine.DateOf(at) {
			day++
		}
		if at.Sub(one) < account.MinuteSpan {
			minute++
		}
	}
	return day, minute
}

// checkQuota compares an answer with the admissions before it: neither window is over-granted, the reported remainder
// is right and never rises within the day, and a client with quota left is not refused.
func (w *daySimulation) checkQuota(c *dayClient, admitted bool, at time.Time, header http.Header) {
	today := engine.DateOf(at)
	day, minute := c.charged(at)
	var limit, shown int
	var reset int64
	line := header.Get("X-RateLimit-Limit") + " " + header.Get("X-RateLimit-Remaining") + " " + header.Get("X-RateLimit-Reset")
	if _, err := fmt.Sscanf(line, "%d %d %d", &limit, &shown, &reset); err != nil {
		w.fail("X-RateLimit is %q: %v", line, err)
		return
	}
	showsDay := limit != dayMinute // the tighter window: the other has at least as much left
	if least, seen := c.lowestRemaining[today]; showsDay && seen && shown > least {
		w.fail("%s: remaining rose from %d to %d", c.email, least, shown)
	}
	if showsDay {
		c.lowestRemaining[today] = shown
	}
	young := at.Sub(w.startedAt) < account.MinuteSpan // after a start the minute counts leased requests
	switch {
	case day > dayQuota || minute > dayMinute:
		w.fail("%s: %d admitted today, %d within the minute", c.email, day, minute)
	case shown > dayQuota-day || shown > dayMinute-minute:
		w.fail("%s: %d remain after %d of the day and %d of the minute", c.email, shown, day, minute)
	case showsDay && shown < dayQuota-day-c.forfeited[today]:
		w.fail("%s: %d remain of the day after %d, a crash may have cost %d", c.email, shown, day, c.forfeited[today])
	case !showsDay && shown < dayMinute-minute && !young:
		w.fail("%s: %d remain of the minute after %d", c.email, shown, minute)
	case !admitted && shown > 0:
		w.fail("%s is refused with %d left", c.email, shown)
	case showsDay && reset != (today+1).Start().Unix():
		w.fail("%s: the day ends at %d", c.email, reset)
	}
}

// checkRates compares a list with what was acknowledged: nothing older is served, and expired rates are stale or not
// ranked.
func (w *daySimulation) checkRates(path, body string, at time.Time) {
	var list struct {
		Data []struct {
			InstitutionID, Sell string
			Stale               bool
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		w.fail("%v: %s", err, body)
		return
	}
	w.mu.Lock()
	quotes := maps.Clone(w.quotes)
	w.mu.Unlock()
	seen := map[string]bool{}
	for _, rate := range list.Data {
		seen[rate.InstitutionID] = true
		want, known := quotes[rate.InstitutionID]
		if !known {
			continue
		}
		expired := !want.expires.IsZero() && !at.Before(want.expires)
		if rate.Stale != expired || expired && path == best {
			w.fail("%s: %+v, expires %s", path, rate, want.expires)
		}
		if expired {
			w.counts["expiries seen"]++
		}
		if rate.Sell != want.sell {
			w.fail("%s shows %s of %s, acknowledged was %s", path, rate.Sell, rate.InstitutionID, want.sell)
		}
	}
	for id, q := range quotes {
		current := q.expires.IsZero() || at.Before(q.expires)
		if (path == best && current || path == "/v1/rates") && !seen[id] {
			w.fail("%s lacks %s: %s", path, id, body)
		}
	}
}

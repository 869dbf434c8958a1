//go:build faults

package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/apitest"
)

// Operations that change an account or a rate. Each change is recorded before it is sent and after its answer.

// signIn gives an account a new session.
func (l *checker) signIn(mail *mailServer, c *httpClient, m *endpoint, a *trackedAccount) error {
	token, err := mail.session(c, m.url, a.email)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a.session, a.sessionStart = token, l.startedAt.Add(l.now())
	return nil
}

// keyRefusals returns what a request for a key may be answered, if the account may have been suspended or not
// meanwhile and may have had any number of keys up to mostActive; "" means that it gets the key.
func keyRefusals(maybeSuspended, maybeFree bool, mostActive int) map[string]bool {
	return map[string]bool{
		string(engine.CodeAccountSuspended): maybeSuspended, "": maybeFree,
		string(engine.CodeKeyLimitReached): maybeFree && mostActive >= account.KeysActiveMax,
	}
}

// newKey requests a key from a node.
func (l *checker) newKey(c *httpClient, m *endpoint, a *trackedAccount) (*accountKey, answer) {
	l.mu.Lock()
	k := &accountKey{name: fmt.Sprintf("key %d", len(a.keys)), made: interval{from: l.now()}, outcome: unknown, touched: true}
	others := 0 // that may be active
	for _, other := range a.keys {
		if other.outcome != refused && other.revoked == nil {
			others++
		}
	}
	a.keys, a.touched = append(a.keys, k), true
	a.changes++
	session, suspended, suspending, changes := a.session, a.suspended, a.suspending, a.changes
	l.mu.Unlock()
	got, err := c.do(http.MethodPost, m.url+"/v1/account/keys", session, map[string]string{"name": k.name})
	var made struct{ Data struct{ ID, Secret string } }
	if err == nil && got.good() {
		err = got.decode(&made)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	meanwhile := a.changes != changes // a suspension may have begun or ended
	a.changes++
	k.made.to = l.now()
	k.outcome = l.countOutcome("keys", m, &got, err)
	k.id, k.secret = made.Data.ID, made.Data.Secret
	allowed := keyRefusals(suspended || suspending || meanwhile, !suspended || suspending || meanwhile, others)
	switch {
	case !l.singleNode():
	case k.outcome == acknowledged && !allowed[""]:
		l.violate(wronglyAccepted, "%s is suspended and gets key %s", a.email, k.id)
	case (got.status == http.StatusConflict || got.code == string(engine.CodeAccountSuspended)) && !allowed[got.code]:
		l.violate(unexplained, "%s is refused a key with %s although it has %d (suspended: %v)", a.email, got.code, others, suspended)
	}
	return k, got
}

// endKey requests the revocation of a key.
func (l *checker) endKey(c *httpClient, m *endpoint, a *trackedAccount, k *accountKey) answer {
	l.mu.Lock()
	if k.asked++; k.asked == 1 {
		k.ended.from = l.now()
	}
	k.touched, a.touched = true, true
	a.changes++
	session := a.session
	l.mu.Unlock()
	got, err := c.do(http.MethodDelete, m.url+"/v1/account/keys/"+k.id, session, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	a.changes++
	switch outcome := l.countOutcome("revocations", m, &got, err); {
	case outcome == refused:
		k.asked--
	case outcome == acknowledged && k.revoked == nil:
		k.revoked, k.ended.to = m, l.now()
	}
	return got
}

// learnKeys reads from a node the keys of an account whose creation was not answered, so that they can be revoked.
func (l *checker) learnKeys(c *httpClient, m *endpoint, a *trackedAccount) {
	l.mu.Lock()
	session := a.session
	l.mu.Unlock()
	got, err := c.do(http.MethodGet, m.url+"/v1/account/keys", session, nil)
	var list struct{ Data []listedKey }
	if err != nil || got.decode(&list) != nil {
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

// pickKeys returns a key that is certainly active, one that may be (loose), and one that is certainly revoked (gone);
// nil if there is none.
func (a *trackedAccount) pickKeys(chance *rand.Rand) (good, loose, gone *accountKey) {
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

// active returns the keys that are certainly active.
func (l *checker) active(a *trackedAccount) (keys []*accountKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range a.keys {
		if k.outcome == acknowledged && k.revoked == nil && k.asked == 0 {
			keys = append(keys, k)
		}
	}
	return keys
}

// suspend suspends an account, or lifts the suspension. Only one goroutine does so.
func (l *checker) suspend(m *endpoint, a *trackedAccount) {
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
	switch l.countOutcome("suspensions", m, &got, err) {
	case acknowledged:
		a.suspended, a.suspending = on, false
	case refused:
		a.suspending = doubted
	}
}

// limit sets the limits of an account through a node.
func (l *checker) limit(m *endpoint, a *trackedAccount, day int) (answer, error) {
	l.mu.Lock()
	a.day = max(a.day, day)
	l.mu.Unlock()
	got, err := m.admin.do(http.MethodPost, "http://node/accounts/"+a.email+"/limit", "", map[string]int{"day": day, "minute": a.minute})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.countOutcome("limits", m, &got, err)
	return got, err
}

// set publishes the next value of a series through a node.
func (l *checker) set(m *endpoint, s *series) (number int, got answer) {
	l.mu.Lock()
	one := &seriesValue{interval: interval{from: l.now()}, by: m, outcome: unknown}
	s.values = append(s.values, one)
	number = len(s.values)
	l.mu.Unlock()
	got, err := m.admin.do(http.MethodPost, "http://node/rates", "", map[string]string{
		"institution": s.institution, "currency": "USD", "buy": valueOf(number), "sell": "59.9",
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	one.to = l.now()
	one.outcome = l.countOutcome("rates", m, &got, err)
	if one.decided = one.outcome != unknown; one.outcome != acknowledged {
		return number, got
	}
	var set struct{ Published *struct{ Buy string } }
	if err := got.decode(&set); err != nil || set.Published == nil {
		l.violate(unexplained, "node %d takes %s in and publishes nothing (%v): %s", m.number, valueOf(number), err, got.body)
	} else if shown, _ := numberOf(set.Published.Buy); s.before(shown, number) || l.singleNode() && shown != number {
		l.violate(wentBack, "node %d takes %s of %s in and publishes %s", m.number, valueOf(number), s.institution, set.Published.Buy)
	}
	return number, got
}

// before reports whether a value was certainly replaced by another: it was answered before the other was sent. The
// caller holds mu.
func (s *series) before(a, b int) bool {
	switch {
	case a == b || b == 0:
		return false
	case a == 0:
		return s.values[b-1].outcome == acknowledged
	}
	return s.values[a-1].decided && s.values[a-1].to < s.values[b-1].from
}

// snapshot returns the checker's present state.
func (l *checker) snapshot() *checker {
	l.mu.Lock()
	defer l.mu.Unlock()
	then := newChecker(l.limits)
	then.startedAt, then.auditor, then.day = l.startedAt, l.auditor, l.day
	for _, a := range l.accounts {
		one := *a
		one.keys, one.admissions, one.days = nil, nil, map[engine.Date]int{}
		for _, k := range a.keys {
			key := *k
			one.keys = append(one.keys, &key)
		}
		then.accounts = append(then.accounts, &one)
	}
	for _, s := range l.series {
		one := &series{institution: s.institution}
		for _, x := range s.values {
			set := *x
			one.values = append(one.values, &set)
		}
		then.series = append(then.series, one)
	}
	return then
}

// allowLater adds what happened after a snapshot: each change may be there or not.
func (l *checker) allowLater(later *checker) {
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
		a.session, a.inDoubt = then.session, unreachedLimit
		a.suspending = a.suspending || a.changes != then.changes
	}
	for i, s := range l.series {
		for _, x := range later.series[i].values[len(s.values):] {
			set := *x
			if set.outcome == acknowledged {
				set.outcome, set.decided = unknown, false
			}
			s.values = append(s.values, &set)
		}
	}
}

// loadClient is a client of a node or a cluster under load.
type loadClient struct {
	*checker
	c      *httpClient
	chance *rand.Rand
	up     func() []*endpoint // the nodes that are up, in any order
	own    []*trackedAccount  // accounts whose keys it changes

	viewsMu sync.Mutex // guards views while it queries several nodes at once
	views   map[*endpoint]*clientView
}

func newLoadClient(l *checker, c *httpClient, chance *rand.Rand, up func() []*endpoint, own []*trackedAccount) *loadClient {
	return &loadClient{checker: l, c: c, chance: chance, up: up, own: own, views: map[*endpoint]*clientView{}}
}

// anyNode returns a running node, nil if there is none.
func (w *loadClient) anyNode() *endpoint {
	for _, m := range w.up() {
		return m
	}
	return nil
}

// pickKeys is pickKeys of an account, under the lock.
func (w *loadClient) pickKeys(a *trackedAccount) (good, loose, gone *accountKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return a.pickKeys(w.chance)
}

// read requests a rate, usually with a key of an account, and in some percent of requests with a revoked one or
// without.
func (w *loadClient) read(a *trackedAccount, goneKeys, without int) {
	m := w.anyNode()
	if m == nil {
		return
	}
	good, _, gone := w.pickKeys(a)
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

// askAny requests any rate, with a key or, if that is nil, without.
func (w *loadClient) askAny(m *endpoint, a *trackedAccount, k *accountKey) {
	w.viewsMu.Lock()
	if w.views[m] == nil {
		w.views[m] = newClientView()
	}
	r := request{key: k, want: w.series[w.chance.IntN(len(w.series))], at: m, view: w.views[m]}
	w.viewsMu.Unlock()
	if k != nil {
		r.by = a
	}
	w.ask(w.c, r)
}

// changeKeys creates keys of an own account, sometimes on all nodes at once, and revokes some.
func (w *loadClient) changeKeys() {
	m, a := w.anyNode(), w.own[w.chance.IntN(len(w.own))]
	if m == nil {
		return
	}
	good, loose, _ := w.pickKeys(a)
	switch dice := w.chance.IntN(4); {
	case dice == 0:
		atOnce(w.up(), func(m *endpoint) { w.newKey(w.c, m, a) })
	case dice == 1 || good == nil && loose == nil:
		w.newKey(w.c, m, a)
		w.learnKeys(w.c, m, a)
	case loose != nil:
		w.endKey(w.c, m, a, loose)
	default:
		w.endKey(w.c, m, a, good)
		atOnce(w.up(), func(m *endpoint) { w.askAny(m, a, good) }) // how long do other nodes accept it?
	}
}

// atOnce calls do for several nodes at once.
func atOnce(members []*endpoint, do func(m *endpoint)) {
	inParallel(len(members), members, func(_ int, m *endpoint) { do(m) })
}

const (
	// realRounds is how often a keyWriter creates a key and revokes it.
	realRounds = 10
	// neverFull is more rounds than a node on a full disk survives.
	neverFull = 100_000
	// failStopMax is how long the process may run after its first failed write.
	failStopMax = time.Second
)

// keyWriter is a client that repeatedly creates and revokes keys of one account, with its own checker.
type keyWriter struct {
	l  *checker
	at *endpoint
	a  *trackedAccount
	c  *httpClient

	failed time.Time // when a change first failed or got no answer
	later  int       // good answers after that
}

// newKeyWriter is signed in with a session, or has none yet.
func newKeyWriter(t *testing.T, session string) *keyWriter {
	t.Helper()
	s := &keyWriter{l: newChecker(limits{day: 1000, minute: 60, lease: 16}), at: &endpoint{number: 1}, c: newHTTPClient("")}
	s.a = s.l.newAccount("ana@example.com", 1000, 60)
	s.a.session = session
	t.Cleanup(s.c.close)
	return s
}

// signIn gives it a session at a node.
func (s *keyWriter) signIn(t *testing.T, mail *mailServer, n *nodeProcess) {
	t.Helper()
	s.at.url = n.URL
	noError(t, s.l.signIn(mail, s.c, s.at, s.a))
}

// createAndRevoke creates a key and revokes it; it returns the first answer that is not good.
func (s *keyWriter) createAndRevoke() answer {
	k, got := s.l.newKey(s.c, s.at, s.a)
	if got.good() {
		got = s.l.endKey(s.c, s.at, s.a, k)
	}
	return got
}

// work creates and revokes keys until an answer is not good, and then retries until the process is gone or the rounds
// are over.
func (s *keyWriter) work(n *nodeProcess, rounds int) {
	s.at.url = n.URL
	s.l.end()
	for round := 0; round < rounds && !n.Exited(); round++ {
		if !s.failed.IsZero() {
			if _, got := s.l.newKey(s.c, s.at, s.a); got.good() {
				s.later++
			}
		} else if got := s.createAndRevoke(); !got.good() {
			s.failed = time.Now()
		}
	}
	if s.failed.IsZero() {
		n.Send(syscall.SIGTERM)
	}
}

// createdKeys is the number of acknowledged keys.
func (s *keyWriter) createdKeys() int { return s.l.count("keys", acknowledged) }

// check compares a node's list of keys with what was acknowledged.
func (s *keyWriter) check(n *nodeProcess) error {
	s.at.url = n.URL
	s.l.checkKeys(s.c, s.at, s.a)
	if s.l.violationCount() > 0 {
		return errors.New(strings.Join(s.l.messages, "; "))
	}
	return nil
}

// lasted is how long the process ran after the first failure.
func (s *keyWriter) lasted(n *nodeProcess) time.Duration {
	if s.failed.IsZero() {
		return 0
	}
	return n.Ended.Sub(s.failed) // the client may have waited for a connection after the exit
}

// unsent reports that a request without an answer was never sent: nothing was listening.
func (a *answer) unsent() bool { return a.status == 0 && a.sent.Load() == 0 }

// resends is how often the request was sent before the answered attempt: each may have been executed.
func (a *answer) resends() int { return max(0, int(a.sent.Load())-1) }

// failure describes an unwanted answer, with the error of do if there was one.
func (a *answer) failure(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: status %d: %.500s", what, a.status, a.body)
}

// decode decodes the body of a good answer.
func (a *answer) decode(value any) error {
	if !a.good() {
		return fmt.Errorf("status %d: %s", a.status, a.body)
	}
	return json.Unmarshal([]byte(a.body), value)
}

// window is one rate limit from the headers.
type window struct {
	limit, remaining int
	reset            int64 // X-RateLimit: epoch seconds; RateLimit: seconds from now
}

// rateLimit parses the X-RateLimit headers; false without them.
func (a *answer) rateLimit() (window, bool) {
	limit, missing := strconv.Atoi(a.header.Get("X-RateLimit-Limit"))
	remaining, wrong := strconv.Atoi(a.header.Get("X-RateLimit-Remaining"))
	reset, bad := strconv.ParseInt(a.header.Get("X-RateLimit-Reset"), 10, 64)
	return window{limit, remaining, reset}, missing == nil && wrong == nil && bad == nil
}

// askCode requests a login code and waits for its email; "" if none arrives. A client address may request 30 codes an
// hour and an e-mail address one a minute, so many clients need several addresses: see clientAddress.
func (p *mailServer) askCode(c *httpClient, url, email string) (string, answer, error) {
	got, err := c.do(http.MethodPost, url+"/v1/account/codes", "", map[string]string{"email": email})
	if err != nil || !got.good() {
		return "", got, err
	}
	mail, _ := p.Receive(email, requestTimeout)
	return mail.Code(), got, nil
}

// openSession tries a code at a node and returns the session token, "" if it is rejected.
func openSession(c *httpClient, url, email, code string) (string, answer, error) {
	got, err := c.do(http.MethodPost, url+"/v1/account/sessions", "", map[string]string{"email": email, "code": code})
	if err != nil || !got.good() {
		return "", got, err
	}
	var opened struct{ Data struct{ Token string } }
	err = got.decode(&opened)
	return opened.Data.Token, got, err
}

// session logs in at a node, which creates the account the first time, and returns the token.
func (p *mailServer) session(c *httpClient, url, email string) (string, error) {
	code, got, err := p.askCode(c, url, email)
	if code == "" {
		return "", got.failure("ask a code for "+email, err)
	}
	token, got, err := openSession(c, url, email, code)
	if token == "" {
		return "", got.failure("log in as "+email, err)
	}
	return token, nil
}

// clientAddress is the source address of client n: 25 share one.
func clientAddress(n int) string { return fmt.Sprintf("127.0.%d.%d", 1+n/25/250, 1+n/25%250) }

// writeDataDir writes a data directory with rates and accounts with one key each, and returns the keys.
func writeDataDir(t *testing.T, dir string, accounts int, options ...apitest.Option) (keys []string) {
	t.Helper()
	writeState(t, dir, func(s *apitest.Server) {
		s.Publish(market()...)
		keys = s.Keys(accounts)
	}, options...)
	return keys
}

// writeState writes a data directory with what fill does to a new node.
func writeState(t *testing.T, dir string, fill func(s *apitest.Server), options ...apitest.Option) {
	t.Helper()
	harness, err := apitest.Open(append([]apitest.Option{apitest.FollowClock(time.Now), apitest.Lenient()}, options...)...)
	noError(t, err)
	var state *apitest.State
	made := harness.Do(func(s *apitest.Server) {
		fill(s)
		state = s.Snapshot()
	})
	noError(t, errors.Join(made, harness.Close()))
	noError(t, state.Write(dir))
}

// market returns a rate of every institution that sells dollars and euros.
func market() []apitest.Rate {
	var rates []apitest.Rate
	for i, institution := range engine.DefaultCatalogue().Institutions() {
		if !institution.Active || institution.Type == engine.Official {
			continue
		}
		text := func(hundredths int) string { return fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100) }
		rates = append(rates,
			apitest.Rate{Institution: institution.ID, Currency: "USD", Buy: text(5800 + i), Sell: text(5900 + i)},
			apitest.Rate{Institution: institution.ID, Currency: "EUR", Buy: text(6700 + i), Sell: text(6900 + i)})
	}
	return rates
}

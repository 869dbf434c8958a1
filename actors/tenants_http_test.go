package actors

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi"
)

// front is the HTTP side of a node: the real handlers, over connections without a network.
type front struct {
	server *httpapi.Server
	client *http.Client

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
	open   sync.WaitGroup
}

// openFront lets callers ask a node; a control puts its own gate or service in between.
func openFront(n *node, gate engine.Gate, service engine.Service) *front {
	return openFrontTo(n, gate, service, n.System)
}

// openFrontTo is openFront with accounts of its own too.
func openFrontTo(n *node, gate engine.Gate, service engine.Service, accounts engine.Accounts) *front {
	f := &front{server: httpapi.New(httpapi.Config{
		Service: service, Gate: gate, Accounts: accounts, Catalogue: engine.DefaultCatalogue(), Clock: n.clock.read,
		RequestID: httpapi.RequestIDs(1), Harness: &httpapi.Harness{},
	})}
	f.client = &http.Client{Transport: &http.Transport{DialContext: f.dial, MaxIdleConnsPerHost: 64}}
	return f
}

// addressed is a connection from an address of its own: the brakes on logins are by address.
type addressed struct {
	net.Conn
	from net.Addr
}

// RemoteAddr is the address.
func (a *addressed) RemoteAddr() net.Addr { return a.from }

// dial connects a caller. Once the front is shut nobody gets in, so that no request is ever asked twice.
func (f *front) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, net.ErrClosed
	}
	f.conns = append(f.conns, far)
	from := client(1_000_000 + len(f.conns))
	f.open.Go(func() { _ = f.server.ServeConn(&addressed{far, &net.TCPAddr{IP: from.AsSlice(), Port: 40_000}}) })
	return near, nil
}

// shut ends every connection, whatever is under way over it.
func (f *front) shut() {
	f.mu.Lock()
	f.closed = true
	conns := f.conns
	f.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close() // the caller sees it
	}
	f.client.CloseIdleConnections()
	f.open.Wait()
}

// reply is an answer; status 0 = there was none.
type reply struct {
	status int
	header http.Header
	body   string
}

// code is error.code.
func (r *reply) code() engine.Code {
	var read struct{ Error struct{ Code engine.Code } }
	if json.Unmarshal([]byte(r.body), &read) != nil {
		return ""
	}
	return read.Error.Code
}

// ask makes one request.
func (f *front) ask(method, target, bearer, body string) *reply {
	request, err := http.NewRequestWithContext(context.Background(), method, "http://tasard.test"+target, strings.NewReader(body))
	if err != nil {
		return &reply{}
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	res, err := f.client.Do(request)
	if err != nil {
		return &reply{}
	}
	text, err := io.ReadAll(res.Body)
	_ = res.Body.Close() // what was read is all
	if err != nil {
		return &reply{}
	}
	return &reply{res.StatusCode, res.Header, string(text)}
}

const bestDollars = "/v1/rates/best?currency=USD&operation=buy"

// webAsker is a member who asks over HTTP.
type webAsker struct {
	*front
	m *member
}

func (a webAsker) admit(key int) ending {
	switch got := a.ask(http.MethodGet, bestDollars, a.m.secrets[key], ""); {
	case got.status == http.StatusOK:
		return done
	case got.code() == engine.CodeRevokedKey:
		return refusedKey
	case got.code() == engine.CodeQuotaExceeded:
		return refusedQuota
	}
	return unanswered
}

func (a webAsker) revoke(key int) ending {
	if got := a.ask(http.MethodDelete, "/v1/account/keys/"+a.m.ids[key], a.m.session, ""); got.status != http.StatusNoContent {
		return unanswered
	}
	return done
}

// publishing gives a node something to answer.
func publishing(n *node) {
	if !n.loaded.Load() {
		observe(n.t, n.System, saying("bhd-site", n.clock.read(), "USD", "58.00", "59.00", "bhd"))
	}
}

// overHTTP asks the node through its real handlers.
func overHTTP(n *node, m *member) (asked counter, leave func()) {
	publishing(n)
	f := openFront(n, n.System, n.System)
	return webAsker{f, m}, f.shut
}

// raceGate is the planted bug behind real handlers: a gate that looks, then counts.
type raceGate struct {
	*System
	spent atomic.Int64
}

// Admit looks, then counts.
func (g *raceGate) Admit(c engine.Caller) (engine.Grant, error) {
	if _, err := g.KeyUsage(c.Key); err != nil {
		return engine.Grant{}, err
	}
	spent := int(g.spent.Load())
	window := engine.Window{Limit: historyLimit, Remaining: max(0, historyLimit-spent-1), Reset: noon.Add(engine.NoticeMin + time.Hour)}
	if spent >= historyLimit {
		refusal := engine.Verdict{Violated: engine.CodeQuotaExceeded, Day: window, Minute: window, RetryAfter: time.Hour}
		return engine.Grant{Verdict: refusal}, nil
	}
	runtime.Gosched()
	g.spent.Store(int64(spent + 1))
	return engine.Grant{Verdict: engine.Verdict{Admitted: true, Day: window, Minute: window}}, nil
}

// Histories over HTTP: TestFaultsQ1_Histories has all of them.
func TestQ1_HistoriesOverHTTP(t *testing.T) { checkHistories(t, 6, 4, overHTTP) }

func TestQ1_Control_CheckThenActOverHTTP(t *testing.T) {
	racing := func(n *node, m *member) (asked counter, leave func()) {
		publishing(n)
		f := openFront(n, &raceGate{System: n.System}, n.System)
		return webAsker{f, m}, f.shut
	}
	for seed := range uint64(histories) {
		all := oneHistory(t, seed, 1, false, false, racing)
		if porcupine.CheckOperationsTimeout(quotaModel(), all, time.Minute) == porcupine.Illegal {
			t.Logf("caught in history %d", seed)
			return
		}
	}
	t.Error("a gate that looks and then counts is not caught")
}

// 8 clients over HTTP with both keys of one account ask twice as often as they may. TestFaultsQ1_ExactlyTheLimit asks 2,000 times on a
// limit of 1,000.
func TestQ1_ExactlyTheLimitOverHTTP(t *testing.T) {
	const limit = 240
	admitted, refused := spendOverHTTP(t, engine.LeaseDefault, limit)
	if admitted != limit || refused != limit {
		t.Errorf("%d admitted, %d refused", admitted, refused)
	}
}

// spendOverHTTP asks twice as often as the day allows, and counts the answers.
func spendOverHTTP(t *testing.T, lease, limit int) (admitted, refused int) {
	n := startNode(t, Config{Terms: engine.Terms{Allowance: engine.Allowance{Day: limit, Minute: allowanceMinuteMax}, Lease: lease}})
	m := n.join(1, 2)
	asked, leave := overHTTP(n, m)
	defer leave()
	var clients sync.WaitGroup
	var counts [refusedKey + 1]atomic.Int64
	for number := range historyClients {
		random := rand.New(rand.NewPCG(1, uint64(number)))
		clients.Go(func() {
			for range 2 * limit / historyClients {
				counts[asked.admit(random.IntN(2))].Add(1)
			}
		})
	}
	clients.Wait()
	return counted(counts[done].Load(), n, m), int(counts[refusedQuota].Load())
}

// counted are the answers with a key's quota: before keys are required whoever's quota is used up is refused, not anonymous.
func counted(answers int64, n *node, m *member) int {
	if spent := n.spent(m.token); int64(spent) != answers {
		n.t.Fatalf("%d were answered, %d are counted", answers, spent)
	}
	return int(answers)
}

package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/crc32"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
)

// testKey is a well-formed key; each number has its own.
func testKey(number int) string {
	const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	text := fmt.Sprintf("%s%030d", engine.KeyPrefixTest, number)
	sum := crc32.ChecksumIEEE([]byte(text))
	var check [6]byte
	for i := range check {
		check[len(check)-1-i] = base62[sum%62]
		sum /= 62
	}
	return text + string(check[:])
}

// testSession is a session token; each number has its own.
func testSession(number int) string { return fmt.Sprintf("%s%030d", engine.SessionPrefix, number) }

func bearer(token string) string { return "Authorization: Bearer " + token }

func digestOf(text string) engine.Digest { return engine.SecretOf(text).Digest() }

// fakeGate counts as the contract says, as simply as it can: a list of admissions for each identity.
type fakeGate struct {
	clock      func() time.Time
	allowance  engine.Allowance
	transition engine.Transition
	off        bool  // limits=off
	fault      error // what every admission gets
	panics     any

	mu       sync.Mutex
	accounts map[engine.Digest]uint64      // whose key it is
	refused  map[engine.Digest]engine.Code // keys that open nothing once keys are required
	admitted map[string][]time.Time
	callers  []engine.Caller
	granted  int // answers that were no error
	refunds  int
}

func newFakeGate(clock func() time.Time) *fakeGate {
	return &fakeGate{
		clock: clock, allowance: engine.DefaultAllowance(),
		accounts: map[engine.Digest]uint64{digestOf(testKey(1)): 1, digestOf(testKey(2)): 1},
		refused: map[engine.Digest]engine.Code{
			digestOf(testKey(8)): engine.CodeRevokedKey, digestOf(testKey(9)): engine.CodeAccountSuspended,
		},
		admitted: map[string][]time.Time{},
	}
}

func (g *fakeGate) Enforced() bool                { return !g.off }
func (g *fakeGate) Transition() engine.Transition { return g.transition }

// Admit charges whoever has room.
func (g *fakeGate) Admit(c engine.Caller) (engine.Grant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.callers = append(g.callers, c)
	if g.panics != nil {
		panic(g.panics)
	}
	if g.fault != nil {
		return engine.Grant{}, g.fault
	}
	now := g.clock()
	grant := engine.Grant{Account: g.accounts[c.Key], Address: c.Address, At: engine.Moment{Wall: now}}
	if grant.Account == 0 && g.transition.Required(now) {
		return engine.Grant{}, g.refuse(c)
	}
	who := identityOf(grant)
	grant.Verdict = g.verdict(who, now)
	if grant.Admitted {
		g.admitted[who] = append(g.admitted[who], now)
		grant.Verdict = g.verdict(who, now)
		grant.Admitted, grant.Violated, grant.RetryAfter = true, "", 0
	}
	g.granted++
	return grant, nil
}

func (g *fakeGate) refuse(c engine.Caller) error {
	code := engine.CodeInvalidKey
	if !c.HasKey && !c.Refused {
		code = engine.CodeMissingKey
	} else if named, ok := g.refused[c.Key]; ok {
		code = named
	}
	return &engine.Error{Code: code, Message: "A valid key is needed: " + string(code) + "."}
}

func identityOf(grant engine.Grant) string {
	if grant.Account != 0 {
		return fmt.Sprint("account ", grant.Account)
	}
	return engine.ClientPrefix(grant.Address).String()
}

func (g *fakeGate) verdict(who string, now time.Time) engine.Verdict {
	day, minute := 0, engine.Window{Limit: g.allowance.Minute, Remaining: g.allowance.Minute, Reset: now.Add(time.Minute)}
	for _, at := range g.admitted[who] {
		if engine.DateOf(at) == engine.DateOf(now) {
			day++
		}
		if now.Sub(at) < time.Minute {
			if minute.Remaining == minute.Limit {
				minute.Reset = at.Add(time.Minute)
			}
			minute.Remaining--
		}
	}
	v := engine.Verdict{
		Admitted: true, Minute: minute,
		Day: engine.Window{Limit: g.allowance.Day, Remaining: g.allowance.Day - day, Reset: engine.NextMidnight(now)},
	}
	if v.Minute.Remaining <= 0 {
		v.Admitted, v.Violated, v.RetryAfter = false, engine.CodeRateLimited, minute.Reset.Sub(now)
	}
	if wait := v.Day.Reset.Sub(now); v.Day.Remaining <= 0 && wait > v.RetryAfter {
		v.Admitted, v.Violated, v.RetryAfter = false, engine.CodeQuotaExceeded, wait
	}
	return v
}

// Refund takes the newest admission back.
func (g *fakeGate) Refund(grant engine.Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	who := identityOf(grant)
	g.refunds++
	g.admitted[who] = g.admitted[who][:len(g.admitted[who])-1]
}

// charged is how much an identity has used up of its day.
func (g *fakeGate) charged(who string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.admitted[who])
}

// lastCaller is in whose name the last request was made.
func (g *fakeGate) lastCaller(t testing.TB) engine.Caller {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.callers) == 0 {
		t.Fatal("nobody asked the gate")
	}
	return g.callers[len(g.callers)-1]
}

// spend uses up requests of an identity at an instant.
func (g *fakeGate) spend(who string, count int, at time.Time) {
	for range count {
		g.admitted[who] = append(g.admitted[who], at)
	}
}

// anyone is the identity of a request that names no peer.
const (
	peerDefault = "192.0.2.7"
	anyone      = peerDefault + "/32"
	account1    = "account 1"
)

// gated is a fixture with a gate and accounts.
type gated struct {
	*fixture
	gate     *fakeGate
	accounts *fakeAccounts
}

func newGated(t testing.TB, change func(*Config)) *gated {
	t.Helper()
	g := &gated{}
	g.fixture = newFixture(t, func(c *Config) {
		g.gate, g.accounts = newFakeGate(c.Clock), newFakeAccounts(c.Clock)
		c.Gate, c.Accounts = g.gate, g.accounts
		c.DeprecationLink, c.SunsetLink = "https://tasard.example/keys", "https://tasard.example/keys#when"
		if change != nil {
			change(c)
		}
	})
	return g
}

// announced is a transition whose instant is so far away.
func announced(away time.Duration) engine.Transition {
	return engine.Transition{AnnouncedAt: fakeNow().Add(away - 20*24*time.Hour), RequiredAt: fakeNow().Add(away), By: "operator"}
}

// exchange is a request with a body and a peer. The zero peer is peerDefault.
type exchange struct {
	method, target string
	lines          []string
	body           string
	peer           string
}

// bytes is the request as a client sends it.
func (e exchange) bytes() []byte {
	text := e.method + " " + e.target + " HTTP/1.1\r\nHost: api.example.do\r\n"
	for _, line := range e.lines {
		text += line + "\r\n"
	}
	if e.body != "" {
		text += fmt.Sprintf("Content-Length: %d\r\n", len(e.body))
	}
	return []byte(text + "\r\n" + e.body)
}

// send takes a request through the handler.
func (f *fixture) send(t testing.TB, e exchange) answer {
	t.Helper()
	var ctx fasthttp.RequestCtx
	// The longest of these requests is longer than a server would read.
	wire := bufio.NewReaderSize(bytes.NewReader(e.bytes()), 1<<20)
	if err := ctx.Request.Header.Read(wire); err != nil {
		t.Fatalf("read %s %s: %v", e.method, e.target, err)
	}
	ctx.Request.SetBodyString(e.body)
	peer := e.peer
	if peer == "" {
		peer = peerDefault
	}
	ctx.SetRemoteAddr(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(peer), 40000)))
	f.server.Handler()(&ctx)
	return written(t, &ctx, e.method)
}

// ask is a GET from the default peer.
func (f *fixture) ask(t testing.TB, target string, lines ...string) answer {
	t.Helper()
	return f.send(t, exchange{method: "GET", target: target, lines: lines})
}

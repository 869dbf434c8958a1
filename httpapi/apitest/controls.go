package apitest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// operator is the operator name for account changes made by this package.
const operator = "apitest"

// Publish publishes rates at the time of Clock. When it returns, the node has stored the rates and serves them. It
// fails if the node rejects a rate or quarantines it (holds it back until an operator decides).
func (s *Server) Publish(rates ...Rate) {
	s.t.Helper()
	s.run(func() error { return s.publish(rates) })
}

func (n *Node) publish(rates []Rate) error {
	list, err := refreshes(rates, n.Clock.Now())
	if err != nil || len(list) == 0 {
		return err
	}
	receipt, err := n.instance.system.Observe(list)
	return errors.Join(err, refusalError(&receipt))
}

// Observe passes observations (rates read from a source) to the node, like a collector. The receipt lists the refused
// ones.
func (s *Server) Observe(list ...engine.Refresh) (receipt engine.Receipt) {
	s.t.Helper()
	s.run(func() (err error) {
		receipt, err = s.instance.system.Observe(list)
		return err
	})
	return receipt
}

// Fault makes some requests fail. Earlier faults remain.
func (s *Server) Fault(fault Fault) {
	s.t.Helper()
	s.run(func() error {
		if err := s.checkRoute(fault.Route); err != nil {
			return err
		}
		return s.faults.add(fault)
	})
}

// Fail answers the next requests of a route with status 429, 500 or 503. If times is 0, it answers all requests. route
// has the form of Fault.Route.
func (s *Server) Fail(route string, status, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Status: status, Times: times})
}

// Delay delays the next requests of a route. route and times are as in Fail.
func (s *Server) Delay(route string, wait time.Duration, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Delay: wait, Times: times})
}

// Drop closes the connections of the next requests of a route without a response. route and times are as in Fail.
// net/http repeats a request that fails on a reused connection; the repetition counts as another request.
func (s *Server) Drop(route string, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Drop: true, Times: times})
}

// ClearFaults removes all faults. Delayed requests continue.
func (n *Node) ClearFaults() { n.faults.clear() }

// ClientFrom returns a client with another IP address. The node counts requests separately for each address. ClientFrom
// fails with OnPort and OnListener, because the node then gets the real addresses of clients.
func (s *Server) ClientFrom(address string) (client *http.Client) {
	s.t.Helper()
	s.run(func() error {
		addr, err := netip.ParseAddr(address)
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		if s.inMemory == nil {
			return errors.New("client: with OnPort or OnListener, a client has its real address")
		}
		client = s.inMemory.client(addr)
		s.clients = append(s.clients, client)
		return nil
	})
	return client
}

// Restart stops the node and starts it again. Requests in flight are answered first.
func (s *Server) Restart() {
	s.t.Helper()
	s.run(func() error {
		journal := s.instance.journal
		return s.restart(false, journal.stored)
	})
}

// Crash ends the node as SIGKILL does, and starts it again with the stored data. Connections break. A change is not
// lost if the client got the response before the crash.
func (s *Server) Crash() {
	s.t.Helper()
	s.run(func() error {
		s.acceptor.pause(true) // first, so that the node acknowledges no change after the copy was made
		data := s.instance.journal.stored()
		return s.restart(true, func() journalData { return data })
	})
}

// Snapshot returns the stored data, the time of Clock and the position of the random source.
func (s *Server) Snapshot() (state *State) {
	s.t.Helper()
	s.run(func() error {
		_, err := s.instance.system.States() // waits for writes in flight
		state = &State{s.instance.journal.stored(), s.Clock.Now(), s.random.state()}
		return err
	})
	return state
}

// Restore restarts the node with a State from Snapshot: its data, time and position of the random source.
func (s *Server) Restore(state *State) {
	s.t.Helper()
	s.run(func() error {
		s.Clock.Set(state.clock)
		if err := s.restart(false, func() journalData { return state.data }); err != nil {
			return err
		}
		s.random.setState(state.random) // last, because a start uses random numbers too
		return nil
	})
}

// restart ends all connections, stops the node and starts it with data. Unless abrupt, restart first closes the idle
// connections of the clients. Otherwise a client would send its next request over a closed connection.
func (n *Node) restart(abrupt bool, data func() journalData) error {
	if !abrupt {
		for _, client := range append(slices.Clone(n.clients), n.Client) {
			client.CloseIdleConnections()
		}
		n.acceptor.pause(false)
	}
	if err := n.stop(); err != nil {
		return err
	}
	if err := n.openInstance(data()); err != nil {
		return err
	}
	n.acceptor.resume(n.instance.server)
	return nil
}

// Announce announces that requests will need an API key from requiredAt on. requiredAt must be at least 14 days ahead.
func (s *Server) Announce(requiredAt time.Time) {
	s.t.Helper()
	s.run(func() error {
		_, err := s.instance.system.Announce(requiredAt, operator)
		return err
	})
}

// Code returns the newest login code sent to an e-mail address. It fails if there is none.
func (s *Server) Code(email string) (code string) {
	s.t.Helper()
	s.run(func() error {
		address, err := account.ParseEmail(email)
		if err != nil {
			return err
		}
		var sent bool
		if code, sent = s.mailer.code(address); !sent {
			return fmt.Errorf("no login code was sent to %s", email)
		}
		return nil
	})
	return code
}

// Key creates an API key for the account of an e-mail address, and the account if necessary; without an address always
// a new account. Clients send the key in the header Authorization, after "Bearer ". An account has at most two active
// keys. Each call requests a login code, so Clock must advance by a minute between two calls for the same address.
func (s *Server) Key(email ...string) (key string) {
	s.t.Helper()
	s.run(func() error {
		list, err := s.instance.system.ListAccounts()
		if err == nil {
			key, err = signUp(s.instance.system, &s.mailer, cmp.Or(append(email, generatedEmail(len(list)))...), len(list))
		}
		return err
	})
	return key
}

// Keys creates accounts with one API key each, for load tests. A hundred thousand accounts take seconds. For each
// account the node's monotonic clock advances by four seconds, because a node sends a limited number of login codes an
// hour.
func (s *Server) Keys(count int) (keys []string) {
	s.t.Helper()
	s.run(func() error {
		list, err := s.instance.system.ListAccounts()
		for index := len(list); index < len(list)+count && err == nil; index++ {
			s.skipped.Add(int64(4 * time.Second))
			var key string
			key, err = signUp(s.instance.system, &s.mailer, generatedEmail(index), index)
			keys = append(keys, key)
		}
		return err
	})
	return keys
}

// generatedEmail returns the e-mail address of an account that Key or Keys creates. index counts from 0.
func generatedEmail(index int) string { return fmt.Sprintf("key-%d@apitest.example", index+1) }

// signUp logs in with an e-mail address and creates a key. The first login creates the account. The client address
// depends on index, because logins from one network are limited.
func signUp(system *actors.System, mailer *codeMailer, email string, index int) (string, error) {
	address, err := account.ParseEmail(email)
	if err != nil {
		return "", err
	}
	from := account.Requester{Address: netip.AddrFrom4([4]byte{10, byte(index >> 8), byte(index), 1})}
	if err := system.RequestCode(address, from); err != nil {
		return "", fmt.Errorf("key of %s: %w", email, err)
	}
	code, _ := mailer.code(address)
	session, _, err := system.OpenSession(address, code, from)
	if err != nil {
		return "", fmt.Errorf("key of %s: %w", email, err)
	}
	_, secret, err := system.CreateKey(session.Digest(), operator)
	if err != nil {
		return "", fmt.Errorf("key of %s: %w", email, err)
	}
	return secret.Reveal(), nil
}

// codeMailer keeps the newest login code of each e-mail address instead of sending e-mails.
type codeMailer struct {
	mu    sync.Mutex
	codes map[account.Email]account.Secret
}

// Send implements actors.Mailer.
func (m *codeMailer) Send(mail account.LoginMail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.codes == nil {
		m.codes = map[account.Email]account.Secret{}
	}
	m.codes[mail.To] = mail.Code
	return nil
}

func (m *codeMailer) code(to account.Email) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	code, ok := m.codes[to]
	return code.Reveal(), ok
}

// TB is the part of testing.TB used by this package.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Name() string
}

// Server is a Node with controls: methods that change time, data or failures. A control that fails ends the test or, in
// the function of Node.Do, that function.
type Server struct {
	*Node
	t TB
}

// Start starts a node and closes it when the test ends.
func Start(t TB, options ...Option) *Server {
	t.Helper()
	node, err := Open(options...)
	if err != nil {
		t.Fatalf("apitest: %s: %v", t.Name(), err)
		return nil
	}
	t.Cleanup(func() {
		t.Helper()
		if err := node.Close(); err != nil {
			t.Errorf("apitest: end of %s: %v", t.Name(), err)
		}
	})
	return &Server{node, t}
}

// must ends the test if err is not nil.
func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("apitest: %v", err)
	}
}

// run runs a control. Only one control runs at a time.
func (s *Server) run(control func() error) {
	s.t.Helper()
	s.must(s.withLock(control))
}

func (n *Node) withLock(control func() error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.instance == nil {
		return errClosed
	}
	return control()
}

// Do calls f with a Server, for programs that are not tests. A control that fails ends f, and Do returns the error.
func (n *Node) Do(f func(s *Server)) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			controlErr, ok := cause.(controlError)
			if !ok {
				panic(cause)
			}
			err = controlErr.error
		}
	}()
	f(&Server{n, panicTB{}})
	return nil
}

// controlError is the panic value of a failed control within Do.
type controlError struct{ error }

// panicTB is the TB of a Server in Node.Do: Fatalf panics with a controlError. Controls call only Helper and Fatalf.
type panicTB struct{ TB }

// Helper implements TB.
func (panicTB) Helper() {}

// Fatalf implements TB.
func (panicTB) Fatalf(_ string, args ...any) {
	err, _ := args[0].(error)
	panic(controlError{err})
}

// control is a control that ControlHandler serves.
type control struct {
	method, path string
	example      string // an example of the body or the query string; "" = none
	description  string
	run          controlFunc
}

// controls returns the table of controls. initial is the state that reset restores.
func controls(initial *State) []control {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []control{
		{get, "clock", "", "the time of the node", func(s *Server, _ *http.Request) any { return s.Clock.reading() }},
		{post, "clock", `{"advance":"26h"}`, `moves the clock; or {"set":"2026-03-02T16:00:00Z"}`, withBody(func(s *Server, body *clockMove) any {
			s.must(body.apply(s.Clock))
			return s.Clock.reading()
		})},
		{
			post, "rates", `[{"institution":"ambar","currency":"USD","buy":"58.20","sell":"59.20"}]`,
			"publishes rates; optional: channel, kind, source, effectiveDate, publishedAt, expiresAt",
			withBody(func(s *Server, rates *[]Rate) any {
				s.Publish(*rates...)
				return nil
			}),
		},
		{
			post, "faults", `{"route":"/v1/rates/best","status":503,"times":3}`,
			`makes requests fail: code, retryAfter "2s", delay "1s", drop`,
			withBody(func(s *Server, f *faultRequest) any {
				s.must(f.parse())
				s.Fault(f.Fault)
				return nil
			}),
		},
		{del, "faults", "", "removes all faults", withoutBody(func(s *Server) { s.ClearFaults() })},
		{get, "codes", "?email=ana@example.com", "the newest login code of an address", func(s *Server, r *http.Request) any {
			return map[string]string{"code": s.Code(r.URL.Query().Get("email"))}
		}},
		{post, "keys", `{"email":"ana@example.com"}`, "returns a new API key; without a body of a new account", withBody(func(s *Server, body *struct{ Email string }) any {
			return map[string]string{"key": s.Key(body.Email)}
		})},
		{post, "restart", "", "stops the node and starts it again", withoutBody((*Server).Restart)},
		{post, "crash", "", "kills the node as SIGKILL does, and starts it again", withoutBody((*Server).Crash)},
		{post, "reset", "", "restores the state at the start, without faults", withoutBody(func(s *Server) {
			s.ClearFaults()
			s.Restore(initial)
		})},
	}
}

const controlPath = "/_mock/"

// ControlHandler serves the controls of a node (the methods of Server that change time, data or failures) over HTTP,
// for tests in other languages than Go. GET /_mock/ lists them. Bodies are JSON. A failed control has the response 400
// with {"error": "..."}. Danger: every client of the handler controls the node. Serve it on a listener of its own.
func (n *Node) ControlHandler() (http.Handler, error) {
	var initial *State
	if err := n.Do(func(s *Server) { initial = s.Snapshot() }); err != nil {
		return nil, err
	}
	mux, table := http.NewServeMux(), controls(initial)
	for _, c := range table {
		mux.HandleFunc(c.method+" "+controlPath+c.path, func(w http.ResponseWriter, r *http.Request) { n.serveControl(w, r, c.run) })
	}
	mux.HandleFunc("GET "+controlPath+"{$}", func(w http.ResponseWriter, _ *http.Request) { writeControls(w, table) })
	return mux, nil
}

func writeControls(w http.ResponseWriter, table []control) {
	var list []map[string]string
	for _, c := range table {
		list = append(list, map[string]string{"method": c.method, "path": controlPath + c.path, "example": c.example, "description": c.description})
	}
	w.Header().Set("Content-Type", controlBodyType)
	_ = json.NewEncoder(w).Encode(map[string]any{"controls": list}) // fails only if the client has disconnected
}

// controlFunc runs a control for a request. The result is sent as JSON; nil becomes {}.
type controlFunc func(*Server, *http.Request) any

const (
	controlBodyMax  = 1 << 20 // bytes
	controlBodyType = "application/json"
)

// serveControl runs a control. It rejects requests that a web page of another site may have sent: a body needs a JSON
// content type, which such a page cannot send, and a request without a body must not have Sec-Fetch-Site: cross-site.
func (n *Node) serveControl(w http.ResponseWriter, r *http.Request, control controlFunc) {
	var result any
	err := errors.New("a body needs the header Content-Type: application/json, and a page of another site may not send requests")
	isJSON := strings.HasPrefix(r.Header.Get("Content-Type"), controlBodyType)
	if r.Method == http.MethodGet || isJSON || r.ContentLength == 0 && r.Header.Get("Sec-Fetch-Site") != "cross-site" {
		err = n.Do(func(s *Server) { result = control(s, r) })
	}
	w.Header().Set("Content-Type", controlBodyType)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
		result = map[string]string{"error": err.Error()}
	case result == nil:
		result = struct{}{}
	}
	_ = json.NewEncoder(w).Encode(result) // fails only if the client has disconnected
}

// withoutBody returns a controlFunc that reads no body and has no result.
func withoutBody(control func(*Server)) controlFunc {
	return func(s *Server, _ *http.Request) any {
		control(s)
		return nil
	}
}

// withBody returns a controlFunc that decodes a JSON body into a T. For an empty body, control gets a zero T.
func withBody[T any](control func(*Server, *T) any) controlFunc {
	return func(s *Server, r *http.Request) any {
		body := new(T)
		decoder := json.NewDecoder(http.MaxBytesReader(nil, r.Body, controlBodyMax))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(body); err != nil && !errors.Is(err, io.EOF) {
			s.must(fmt.Errorf("read the body: %w", err))
		}
		return control(s, body)
	}
}

func (c *Clock) reading() any { return map[string]time.Time{"now": c.Now()} }

// clockMove is the body of POST /_mock/clock.
type clockMove struct {
	Set     *time.Time
	Advance string
}

func (m *clockMove) apply(c *Clock) error {
	if (m.Set == nil) == (m.Advance == "") {
		return errors.New(`want either {"advance": "26h"} or {"set": "2026-03-02T16:00:00Z"}`)
	}
	advance, err := parseOptionalDuration("advance", m.Advance)
	if err == nil && m.Set != nil {
		c.Set(*m.Set)
	}
	c.Advance(advance)
	return err
}

// faultRequest is the body of POST /_mock/faults: a Fault with durations as strings.
type faultRequest struct {
	Fault
	RetryAfter, Delay string
}

func (f *faultRequest) parse() error {
	var errs [2]error
	f.Fault.RetryAfter, errs[0] = parseOptionalDuration("retryAfter", f.RetryAfter)
	f.Fault.Delay, errs[1] = parseOptionalDuration("delay", f.Delay)
	return errors.Join(errs[:]...)
}

// parseOptionalDuration parses a duration; "" is 0.
func parseOptionalDuration(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

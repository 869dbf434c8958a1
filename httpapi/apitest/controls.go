package apitest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
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
		if state == nil {
			return errNilState
		}
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

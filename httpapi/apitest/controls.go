package apitest

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// operator is who does things to accounts.
const operator = "apitest"

// Publish has institutions publish rates now. They are on disk and in force when it returns; what the rules hold back fails.
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

// Observe hands over what sources say, as a collector does. What the rules hold back is in the receipt, and does not fail.
func (s *Server) Observe(list ...engine.Refresh) (receipt engine.Receipt) {
	s.t.Helper()
	s.run(func() (err error) {
		receipt, err = s.instance.system.Observe(list)
		return err
	})
	return receipt
}

// Refresh has every source say now what it said last, as at an hour of the schedule: everything that was published is
// current again.
func (s *Server) Refresh() {
	s.t.Helper()
	s.run(func() error {
		return s.republish(time.Time{}, func(string, *engine.SourceQuote) bool { return true })
	})
}

// Expire has the rates of an institution in a currency expire now, whatever their source, channel and kind. "" is all.
func (s *Server) Expire(institution, currency string) {
	s.t.Helper()
	s.run(func() error {
		found := false
		err := s.republish(s.Clock.Now(), func(code string, offer *engine.SourceQuote) bool {
			matches := (currency == "" || code == currency) && (institution == "" || offer.Key.Institution == institution)
			found = found || matches
			return matches
		})
		if err == nil && !found {
			return fmt.Errorf("expire: nothing is published of institution %q in currency %q", institution, currency)
		}
		return err
	})
}

func (n *Node) republish(expires time.Time, match func(string, *engine.SourceQuote) bool) error {
	states, err := n.instance.system.States()
	if err != nil {
		return err
	}
	return n.publish(republishedRates(states, expires, match))
}

// Fault spoils requests from now on.
func (s *Server) Fault(fault Fault) {
	s.t.Helper()
	s.must(s.faults.add(fault))
}

// Fail answers the next n requests of a route with 429, 500 or 503; n = 0 all of them. See Fault.Route.
func (s *Server) Fail(route string, status, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Status: status, Times: times})
}

// Delay lets the next n requests of a route wait.
func (s *Server) Delay(route string, wait time.Duration, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Delay: wait, Times: times})
}

// Drop ends the connections of the next n requests of a route without an answer. On a connection that was used before,
// net/http then asks again by itself: that is one more request.
func (s *Server) Drop(route string, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Drop: true, Times: times})
}

// Truncate ends the connections of the next n requests of a route after so many bytes of the body.
func (s *Server) Truncate(route string, bytes, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Truncate: bytes, Times: times})
}

// ClearFaults ends all faults.
func (n *Node) ClearFaults() { n.faults.clear() }

// Requests are those that the node was sent, the newest 5,000 at least.
func (n *Node) Requests() []Request { return n.requests.all() }

// ClearRequests forgets them.
func (n *Node) ClearRequests() { n.requests.clear() }

// ClientFrom reaches the node as a caller with another address, who is counted apart. A node on a port sees the addresses of
// its callers: there it fails.
func (s *Server) ClientFrom(address string) (client *http.Client) {
	s.t.Helper()
	s.run(func() error {
		from, err := netip.ParseAddr(address)
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		if s.inMemory == nil {
			return errors.New("client: a node on a port sees the addresses that its callers have")
		}
		client = s.inMemory.client(from)
		s.clients = append(s.clients, client)
		return nil
	})
	return client
}

// Restart stops the node in order and starts it again. Requests under way get their answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.run(func() error {
		s.disconnect(false)
		old := s.instance
		s.instance = nil
		if err := old.system.Close(); err != nil {
			return fmt.Errorf("stop: %w", err)
		}
		return s.reopen(old.dir)
	})
}

// Crash ends the node as a kill does, and starts it on what was written by then. Connections break off, and what was answered
// before is kept.
func (s *Server) Crash() {
	s.t.Helper()
	s.run(func() error {
		s.disconnect(true) // first: an answer after the copy would be one that the copy does not know
		files, err := copyLog(s.instance.dir)
		if err != nil {
			s.acceptor.resume(s.instance.server)
			return err
		}
		return s.restartOn(files)
	})
}

// Snapshot keeps what is on disk now, and the time.
func (s *Server) Snapshot() (state *State) {
	s.t.Helper()
	s.run(func() error {
		if _, err := s.instance.system.States(); err != nil { // behind everything that is under way
			return err
		}
		files, err := copyLog(s.instance.dir)
		state = &State{files, s.Clock.Now(), copyAccounts(s.accounts), s.random.state()}
		return err
	})
	return state
}

// Restore goes back to a state: the node starts on it, at its time.
func (s *Server) Restore(state *State) {
	s.t.Helper()
	s.run(func() error {
		s.Clock.Set(state.at)
		s.disconnect(false)
		if err := s.restartOn(state.files); err != nil {
			return err
		}
		return s.restoreHarness(state) // behind the start, which draws as well
	})
}

// restoreHarness takes over what of a state lies beside the log.
func (n *Node) restoreHarness(state *State) error {
	n.accounts = copyAccounts(state.accounts)
	return n.random.setState(state.random)
}

func copyAccounts(accounts map[string]*testAccount) map[string]*testAccount {
	own := map[string]*testAccount{}
	for email, h := range accounts {
		own[email] = &testAccount{h.email, h.id, slices.Clone(h.keys)}
	}
	return own
}

// restartOn starts the node, which everybody has left, on other files.
func (n *Node) restartOn(files map[string][]byte) error {
	dir, err := newLogDir(files)
	if err != nil {
		n.acceptor.resume(n.instance.server)
		return err
	}
	if err := n.stopAndRemove(); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return n.reopen(dir)
}

// disconnect shows callers out. Their idle connections are closed first, so that nobody asks over one that is dead.
func (n *Node) disconnect(abrupt bool) {
	if !abrupt {
		for _, client := range append(slices.Clone(n.clients), n.Client) {
			client.CloseIdleConnections()
		}
	}
	n.acceptor.pause(abrupt)
}

func (n *Node) reopen(dir string) error {
	if err := n.openInstance(dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	n.acceptor.resume(n.instance.server)
	return nil
}

// Announce says from when on keys are required, at least 14 days ahead (K7).
func (s *Server) Announce(requiredAt time.Time) {
	s.t.Helper()
	s.run(func() error {
		_, err := s.instance.system.Announce(requiredAt, operator)
		return err
	})
}

// Code is the newest login code that was sent to an address. It has the form of conformance.Options.Code.
func (n *Node) Code(email string) (string, error) {
	address, err := account.ParseEmail(email)
	if err != nil {
		return "", err
	}
	code, found := n.mailer.code(address)
	if !found {
		return "", fmt.Errorf("no login code was sent to %s", email)
	}
	return code, nil
}

// Code is Node.Code.
func (s *Server) Code(email string) string {
	s.t.Helper()
	code, err := s.Node.Code(email)
	s.must(err)
	return code
}

// testAccount is an account that the harness made.
type testAccount struct {
	email account.Email
	id    uint64
	keys  []string
}

// Key is a new key of a new account: the secret text that goes behind "Bearer ".
func (s *Server) Key() (key string) {
	s.t.Helper()
	s.run(func() (err error) {
		key, err = s.newKey(generatedEmail(len(s.accounts)))
		return err
	})
	return key
}

// generatedEmail is the address of the account behind so many others.
func generatedEmail(number int) string { return fmt.Sprintf("key-%d@apitest.example", number+1) }

// KeyOf is a new key of the account of an address, which is made at the first one. An account has at most two (K5), and a
// session is opened for each: one minute of the clock must lie between them (K3).
func (s *Server) KeyOf(email string) (key string) {
	s.t.Helper()
	s.run(func() (err error) {
		key, err = s.newKey(email)
		return err
	})
	return key
}

// newKey goes the way of a new user.
func (n *Node) newKey(email string) (string, error) {
	made, err := signUp(n.instance.system, &n.mailer, email, len(n.accounts))
	if err != nil {
		return "", err
	}
	owner, err := n.accountOf(made.email)
	if err != nil {
		return "", err
	}
	owner.keys = append(owner.keys, made.keys...)
	return made.keys[0], nil
}

// loginAddress is an address of its own for each account: the brake on logins is by address (K2).
func loginAddress(number int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18, byte(number >> 8), byte(number)})
}

// accountOf is the account of an address.
func (n *Node) accountOf(address account.Email) (*testAccount, error) {
	if owner := n.accounts[address.String()]; owner != nil {
		return owner, nil
	}
	list, err := n.instance.system.ListAccounts()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(a account.Summary) bool { return a.Email == address.ID() })
	if at < 0 {
		return nil, fmt.Errorf("nobody has an account as %s", address)
	}
	owner := &testAccount{email: address, id: list[at].ID}
	n.accounts[address.String()] = owner
	return owner, nil
}

// SetQuota gives the account of an address, or of a key that Key or KeyOf gave, quotas of its own; 0 is the node's. It has
// an effect where limits are on.
func (s *Server) SetQuota(who string, day, minute int) {
	s.t.Helper()
	s.onAccount(who, func(id uint64) error {
		return s.instance.system.SetAccountQuota(id, account.Quota{Day: day, Minute: minute}, operator)
	})
}

// Suspend refuses the keys of an account; see SetQuota for who.
func (s *Server) Suspend(who string) {
	s.t.Helper()
	s.onAccount(who, func(account uint64) error { return s.instance.system.SuspendAccount(account, "by the test", operator) })
}

// Unsuspend takes that back.
func (s *Server) Unsuspend(who string) {
	s.t.Helper()
	s.onAccount(who, func(account uint64) error { return s.instance.system.RestoreAccount(account, operator) })
}

func (s *Server) onAccount(who string, do func(account uint64) error) {
	s.t.Helper()
	s.run(func() error {
		for _, owner := range s.accounts {
			if slices.Contains(owner.keys, who) {
				return do(owner.id)
			}
		}
		if !strings.Contains(who, "@") {
			return errors.New("this is neither an address nor a key that Key or KeyOf gave")
		}
		address, err := account.ParseEmail(who)
		if err != nil {
			return err
		}
		owner, err := s.accountOf(address)
		if err != nil {
			return err
		}
		return do(owner.id)
	})
}

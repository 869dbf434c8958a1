package apitest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// operator is the name under which the harness acts on accounts.
const operator = "apitest"

// Publish publishes rates now. They are on disk and served when it returns. A rate that the rules of the node reject
// or quarantine is an error.
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

// Observe gives the node observations, as a collector does. Rejected values are listed in the receipt.
func (s *Server) Observe(list ...engine.Refresh) (receipt engine.Receipt) {
	s.t.Helper()
	s.run(func() (err error) {
		receipt, err = s.instance.system.Observe(list)
		return err
	})
	return receipt
}

// Refresh has every source repeat its last rates now, so that all of them are current again.
func (s *Server) Refresh() {
	s.t.Helper()
	s.run(func() error {
		return s.republish(time.Time{}, func(string, *engine.SourceQuote) bool { return true })
	})
}

// Expire expires the rates of an institution in a currency, whatever their source, channel and kind. "" stands for
// all.
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

// Fault adds a fault.
func (s *Server) Fault(fault Fault) {
	s.t.Helper()
	s.must(s.faults.add(fault))
}

// Fail answers the next requests of a route with 429, 500 or 503; times = 0 stands for all of them. See Fault.Route.
func (s *Server) Fail(route string, status, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Status: status, Times: times})
}

// Delay delays the next requests of a route.
func (s *Server) Delay(route string, wait time.Duration, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Delay: wait, Times: times})
}

// Drop closes the connections of the next requests of a route without an answer. On a connection that was used before,
// net/http retries: that is one more request.
func (s *Server) Drop(route string, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Drop: true, Times: times})
}

// Truncate closes the connections of the next requests of a route after some bytes of the body.
func (s *Server) Truncate(route string, bytes, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Truncate: bytes, Times: times})
}

// ClearFaults removes all faults.
func (n *Node) ClearFaults() { n.faults.clear() }

// Requests returns the newest requests that the node received, at least 5,000.
func (n *Node) Requests() []Request { return n.requests.all() }

// ClearRequests empties the list of Requests.
func (n *Node) ClearRequests() { n.requests.clear() }

// ClientFrom returns a client with another address, which is limited separately. It fails on a node with a port, which
// sees the real addresses.
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

// Restart stops the node and starts it again. Requests in flight are answered first.
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

// Crash ends the node as SIGKILL does and starts it on what was on disk. Connections break. Everything that was
// answered before is kept.
func (s *Server) Crash() {
	s.t.Helper()
	s.run(func() error {
		s.disconnect(true) // first: no answer may come after the copy is made
		files, err := copyLog(s.instance.dir)
		if err != nil {
			s.acceptor.resume(s.instance.server)
			return err
		}
		return s.restartOn(files)
	})
}

// Snapshot returns the data on disk and the time.
func (s *Server) Snapshot() (state *State) {
	s.t.Helper()
	s.run(func() error {
		if _, err := s.instance.system.States(); err != nil { // waits for writes in flight
			return err
		}
		files, err := copyLog(s.instance.dir)
		state = &State{files, s.Clock.Now(), s.random.state()}
		return err
	})
	return state
}

// Restore restarts the node on a state, at the time of that state.
func (s *Server) Restore(state *State) {
	s.t.Helper()
	s.run(func() error {
		s.Clock.Set(state.at)
		s.disconnect(false)
		if err := s.restartOn(state.files); err != nil {
			return err
		}
		return s.random.setState(state.random) // last: starting draws random numbers too
	})
}

// restartOn starts a node without connections on other files.
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

// disconnect ends all connections. Clients close their idle ones first, unless abrupt, so that none of them sends a
// request over a dead one.
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

// Announce announces that keys are required from a time on, which must be at least 14 days ahead.
func (s *Server) Announce(requiredAt time.Time) {
	s.t.Helper()
	s.run(func() error {
		_, err := s.instance.system.Announce(requiredAt, operator)
		return err
	})
}

// Code returns the newest login code that was sent to an e-mail address. It fits conformance.Options.Code.
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

// Key creates an account and returns its key, the text that follows "Bearer ".
func (s *Server) Key() string {
	s.t.Helper()
	return s.KeyOf("")
}

// KeyOf returns a new key of the account with an e-mail address, which it creates if necessary. An account has at most
// two active keys. Each call logs in, so the clock must advance a minute between two calls for one address.
func (s *Server) KeyOf(email string) (key string) {
	s.t.Helper()
	s.run(func() error {
		list, err := s.instance.system.ListAccounts()
		if err == nil {
			key, err = signUp(s.instance.system, &s.mailer, cmp.Or(email, generatedEmail(len(list))), len(list))
		}
		return err
	})
	return key
}

// SetQuota sets the quota of an account, named by its e-mail address or one of its keys; 0 is the node's quota. Limits
// must be on.
func (s *Server) SetQuota(owner string, day, minute int) {
	s.t.Helper()
	s.onAccount(owner, func(id uint64) error {
		return s.instance.system.SetAccountQuota(id, account.Quota{Day: day, Minute: minute}, operator)
	})
}

// Suspend suspends an account; its keys are refused. See SetQuota.
func (s *Server) Suspend(owner string) {
	s.t.Helper()
	s.onAccount(owner, func(id uint64) error { return s.instance.system.SuspendAccount(id, "by the test", operator) })
}

// Unsuspend ends a suspension.
func (s *Server) Unsuspend(owner string) {
	s.t.Helper()
	s.onAccount(owner, func(id uint64) error { return s.instance.system.RestoreAccount(id, operator) })
}

// onAccount finds an account by its e-mail address or one of its keys.
func (s *Server) onAccount(name string, do func(id uint64) error) {
	s.t.Helper()
	s.run(func() error {
		system := s.instance.system
		list, err := system.ListAccounts()
		if err != nil {
			return err
		}
		email, notEmail := account.ParseEmail(name)
		isKey := func(key account.KeyRecord) bool { return key.Digest == account.SecretOf(name).Digest() }
		for i := range list {
			found := list[i].Email == email.ID()
			if notEmail != nil {
				record, _, err := system.ShowAccount(list[i].ID)
				if err != nil {
					return err
				}
				found = slices.ContainsFunc(record.Keys, isKey)
			}
			if found {
				return do(list[i].ID)
			}
		}
		return errors.New("this is neither the e-mail address nor a key of an account")
	})
}

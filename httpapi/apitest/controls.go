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

// operator is the operator name that the harness uses for changes of accounts.
const operator = "apitest"

// Publish publishes rates now. When it returns, they are on disk and the node serves them. A rate that the rules of
// the node reject or quarantine is an error.
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

// Observe passes observations to the node, as a collector does. The receipt lists the rejected values.
func (s *Server) Observe(list ...engine.Refresh) (receipt engine.Receipt) {
	s.t.Helper()
	s.run(func() (err error) {
		receipt, err = s.instance.system.Observe(list)
		return err
	})
	return receipt
}

// Refresh publishes the last rates of every source again, so that all of them are current.
func (s *Server) Refresh() {
	s.t.Helper()
	s.run(func() error {
		return s.republish(time.Time{}, func(string, *engine.SourceQuote) bool { return true })
	})
}

// Expire expires the rates of an institution in a currency, of all sources, channels and kinds. "" selects all
// institutions or currencies.
func (s *Server) Expire(institution, currency string) {
	s.t.Helper()
	s.run(func() error {
		matched := false
		err := s.republish(s.Clock.Now(), func(code string, quote *engine.SourceQuote) bool {
			matches := (currency == "" || code == currency) && (institution == "" || quote.Key.Institution == institution)
			matched = matched || matches
			return matches
		})
		if err == nil && !matched {
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

// Fail answers the next requests of a route with 429, 500 or 503. If times is 0, it answers all of them. See
// Fault.Route.
func (s *Server) Fail(route string, status, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Status: status, Times: times})
}

// Delay delays the next requests of a route.
func (s *Server) Delay(route string, wait time.Duration, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Delay: wait, Times: times})
}

// Drop closes the connections of the next requests of a route without a response. On a connection that was used before,
// net/http retries the request, and the fault counts the retry as another request.
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

// Requests returns the newest requests that the node received: all of them, or at least 5,000.
func (n *Node) Requests() []Request { return n.requests.all() }

// ClearRequests empties the list of Requests.
func (n *Node) ClearRequests() { n.requests.clear() }

// ClientFrom returns a client with another address, to which separate limits apply. It fails on a node with OnPort or
// OnListener, because there the node sees the real addresses.
func (s *Server) ClientFrom(address string) (client *http.Client) {
	s.t.Helper()
	s.run(func() error {
		addr, err := netip.ParseAddr(address)
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		if s.inMemory == nil {
			return errors.New("client: a node on a port sees the addresses that its callers have")
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
		s.disconnect(false)
		old := s.instance
		s.instance = nil
		if err := old.system.Close(); err != nil {
			return fmt.Errorf("stop: %w", err)
		}
		return s.reopen(old.dir)
	})
}

// Crash ends the node as SIGKILL does and starts it with the data that was on disk. Connections break. Changes whose
// response was sent before the crash are not lost.
func (s *Server) Crash() {
	s.t.Helper()
	s.run(func() error {
		s.disconnect(true) // before the copy, so that no change is acknowledged that the copy lacks
		files, err := copyLog(s.instance.dir)
		if err != nil {
			s.acceptor.resume(s.instance.server)
			return err
		}
		return s.restartOn(files)
	})
}

// Snapshot returns the data on disk, the time and the position of the random source.
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
		s.Clock.Set(state.clock)
		s.disconnect(false)
		if err := s.restartOn(state.files); err != nil {
			return err
		}
		return s.random.setState(state.random) // last: starting draws random numbers too
	})
}

// restartOn stops a node that has no connections and starts it with other files.
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

// disconnect ends all connections. If abrupt is false, the clients close their idle connections first, so that they do
// not send a request over a closed connection.
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

// Announce announces that keys are required from requiredAt on. It must be at least 14 days ahead.
func (s *Server) Announce(requiredAt time.Time) {
	s.t.Helper()
	s.run(func() error {
		_, err := s.instance.system.Announce(requiredAt, operator)
		return err
	})
}

// Code returns the newest login code that was sent to an e-mail address. It can be used as conformance.Options.Code.
func (n *Node) Code(email string) (string, error) {
	address, err := account.ParseEmail(email)
	if err != nil {
		return "", err
	}
	code, ok := n.mailer.code(address)
	if !ok {
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

// Key creates an account and returns its key, which clients send after "Bearer ".
func (s *Server) Key() string {
	s.t.Helper()
	return s.KeyOf("")
}

// KeyOf creates a key for the account with an e-mail address, and the account if necessary. An account has at most two
// active keys. Each call logs in, so the clock must advance a minute between two calls for one address.
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

// SetQuota sets the quota of an account. The owner is its e-mail address or one of its keys. 0 means the node's
// quota. The node must have been started with Limits or Quota.
func (s *Server) SetQuota(owner string, day, minute int) {
	s.t.Helper()
	s.onAccount(owner, func(id uint64) error {
		return s.instance.system.SetAccountQuota(id, account.Quota{Day: day, Minute: minute}, operator)
	})
}

// Suspend suspends an account, so that its keys are rejected. For owner see SetQuota.
func (s *Server) Suspend(owner string) {
	s.t.Helper()
	s.onAccount(owner, func(id uint64) error { return s.instance.system.SuspendAccount(id, "by the test", operator) })
}

// Unsuspend ends a suspension.
func (s *Server) Unsuspend(owner string) {
	s.t.Helper()
	s.onAccount(owner, func(id uint64) error { return s.instance.system.RestoreAccount(id, operator) })
}

// onAccount calls action with the id of the account with an e-mail address or a key.
func (s *Server) onAccount(name string, action func(id uint64) error) {
	s.t.Helper()
	s.run(func() error {
		system := s.instance.system
		list, err := system.ListAccounts()
		if err != nil {
			return err
		}
		email, emailErr := account.ParseEmail(name)
		isKey := func(key account.KeyRecord) bool { return key.Digest == account.SecretOf(name).Digest() }
		for i := range list {
			matches := list[i].Email == email.ID()
			if emailErr != nil {
				record, _, err := system.ShowAccount(list[i].ID)
				if err != nil {
					return err
				}
				matches = slices.ContainsFunc(record.Keys, isKey)
			}
			if matches {
				return action(list[i].ID)
			}
		}
		return errors.New("this is neither the e-mail address nor a key of an account")
	})
}

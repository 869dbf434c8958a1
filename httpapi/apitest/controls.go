package apitest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// operator is the operator name that this package gives to the node when it changes accounts.
const operator = "apitest"

// Publish publishes rates at the time of Clock. When it returns, the rates are stored and the node serves them. It
// fails if the node rejects a rate, or quarantines it: holds it back until an operator decides.
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

// Observe passes observations (rates as read from a source) to the node, like a collector does. The receipt lists the
// observations that the node refused.
func (s *Server) Observe(list ...engine.Refresh) (receipt engine.Receipt) {
	s.t.Helper()
	s.run(func() (err error) {
		receipt, err = s.instance.system.Observe(list)
		return err
	})
	return receipt
}

// Refresh publishes the newest rates of every source again, so that no rate is expired.
func (s *Server) Refresh() {
	s.t.Helper()
	s.run(func() error {
		return s.republish(time.Time{}, func(string, *engine.SourceQuote) bool { return true })
	})
}

// Expire makes all rates of an institution in a currency expire now. "" means all institutions or all currencies.
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
			return fmt.Errorf("expire: no rate of institution %q in currency %q is published", institution, currency)
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

// Fault makes some requests fail, as the argument describes. It does not end earlier faults.
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

// Drop closes the connections of the next requests of a route without a response. route and times are as in Fail. If
// the connection was used before, net/http sends the request again, which counts as another request.
func (s *Server) Drop(route string, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Drop: true, Times: times})
}

// Truncate closes the connections of the next requests of a route after so many bytes of the response body. route and
// times are as in Fail.
func (s *Server) Truncate(route string, bytes, times int) {
	s.t.Helper()
	s.Fault(Fault{Route: route, Truncate: bytes, Times: times})
}

// ClearFaults removes all faults.
func (n *Node) ClearFaults() { n.faults.clear() }

// Requests returns the requests that the node has received, oldest first. Of more than 10,000 requests it returns only
// the newest, at least 5,000.
func (n *Node) Requests() []Request { return n.requests.all() }

// ClearRequests empties the list of Requests.
func (n *Node) ClearRequests() { n.requests.clear() }

// ClientFrom returns a client with another IP address. The node counts requests separately for each address. ClientFrom
// fails if the node was started with OnPort or OnListener, because the node then gets the real addresses of clients.
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
		s.disconnect(false)
		journal := s.instance.journal
		if err := s.stop(); err != nil {
			return err
		}
		return s.reopen(journal.stored())
	})
}

// Crash ends the node like SIGKILL, and starts it again with the data that was stored. Connections break. A change
// whose response was sent before the crash is not lost.
func (s *Server) Crash() {
	s.t.Helper()
	s.run(func() error {
		s.disconnect(true) // first, so that the node acknowledges no change that the copy lacks
		return s.restartOn(s.instance.journal.stored())
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

// Restore restarts the node with the data, the time and the position of the random source that Snapshot has saved in a
// State.
func (s *Server) Restore(state *State) {
	s.t.Helper()
	s.run(func() error {
		if state == nil {
			return errNilState
		}
		s.Clock.Set(state.clock)
		s.disconnect(false)
		if err := s.restartOn(state.data); err != nil {
			return err
		}
		return s.random.setState(state.random) // last, because a start uses random numbers too
	})
}

// restartOn stops the node and starts it with other data. The caller must have called disconnect.
func (n *Node) restartOn(data journalData) error {
	if err := n.stop(); err != nil {
		return err
	}
	return n.reopen(data)
}

// disconnect ends all connections. If abrupt is false, it first makes the clients close their idle connections. A
// client would otherwise send its next request over a connection that the node has closed.
func (n *Node) disconnect(abrupt bool) {
	if !abrupt {
		for _, client := range append(slices.Clone(n.clients), n.Client) {
			client.CloseIdleConnections()
		}
	}
	n.acceptor.pause(abrupt)
}

func (n *Node) reopen(data journalData) error {
	if err := n.openInstance(data); err != nil {
		return err
	}
	n.acceptor.resume(n.instance.server)
	return nil
}

// Announce announces that requests need an API key from requiredAt on. requiredAt must be at least 14 days ahead.
func (s *Server) Announce(requiredAt time.Time) {
	s.t.Helper()
	s.run(func() error {
		_, err := s.instance.system.Announce(requiredAt, operator)
		return err
	})
}

// Code returns the newest login code that was sent to an e-mail address. It can be used as Options.Code of package
// conformance.
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

// Code returns the newest login code for an e-mail address, like Node.Code. If there is no code, it ends the test.
func (s *Server) Code(email string) string {
	s.t.Helper()
	code, err := s.Node.Code(email)
	s.must(err)
	return code
}

// Key creates an account and returns its API key. Clients send it in the header Authorization, after "Bearer ".
func (s *Server) Key() string {
	s.t.Helper()
	return s.KeyOf("")
}

// KeyOf creates an API key for the account with an e-mail address. If there is no such account, it creates the account.
// An account has at most two active keys. Each call requests a login code, so the clock must advance by a minute
// between two calls for one address.
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

// SetQuota sets the quota of an account. owner is the e-mail address or a key of the account. 0 means the default quota
// of the node. The quota has an effect only if the node was started with Limits or Quota.
func (s *Server) SetQuota(owner string, day, minute int) {
	s.t.Helper()
	s.onAccount(owner, func(id uint64) error {
		return s.instance.system.SetAccountQuota(id, account.Quota{Day: day, Minute: minute}, operator)
	})
}

// Suspend suspends an account, so that the node rejects its keys. owner is the e-mail address or a key of the account.
func (s *Server) Suspend(owner string) {
	s.t.Helper()
	s.onAccount(owner, func(id uint64) error { return s.instance.system.SuspendAccount(id, "by the test", operator) })
}

// Unsuspend ends the suspension of an account. owner is the e-mail address or a key of the account.
func (s *Server) Unsuspend(owner string) {
	s.t.Helper()
	s.onAccount(owner, func(id uint64) error { return s.instance.system.RestoreAccount(id, operator) })
}

// onAccount calls action with the id of an account. owner is the e-mail address or a key of the account.
func (s *Server) onAccount(owner string, action func(id uint64) error) {
	s.t.Helper()
	s.run(func() error {
		system := s.instance.system
		list, err := system.ListAccounts()
		if err != nil {
			return err
		}
		email, emailErr := account.ParseEmail(owner)
		isKey := func(key account.KeyRecord) bool { return key.Digest == account.SecretOf(owner).Digest() }
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
		return errors.New("the owner is neither the e-mail address nor a key of an account")
	})
}

package apitest

import (
	"net/http"
	"time"

	"github.com/tasard/tasard/engine"
)

// TB is what the harness needs of a test; *testing.T, *testing.B and *testing.F have it.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Name() string
}

// Server is a Node in a test: what a button can't do fails the test.
type Server struct {
	*Node
	t TB
}

// Start starts a node that ends with the test. At its end the node's log is held against what it knew.
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
			t.Logf("apitest: %s: its last requests were %s", t.Name(), node.requests.last())
		}
	})
	return &Server{node, t}
}

// must fails the test over an error.
func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("apitest: %v", err)
	}
}

// Publish is Node.Publish.
func (s *Server) Publish(rates ...Rate) {
	s.t.Helper()
	s.must(s.Node.Publish(rates...))
}

// Observe is Node.Observe.
func (s *Server) Observe(list ...engine.Refresh) engine.Receipt {
	s.t.Helper()
	receipt, err := s.Node.Observe(list...)
	s.must(err)
	return receipt
}

// Refresh is Node.Refresh.
func (s *Server) Refresh() {
	s.t.Helper()
	s.must(s.Node.Refresh())
}

// Expire is Node.Expire.
func (s *Server) Expire(institution, currency string) {
	s.t.Helper()
	s.must(s.Node.Expire(institution, currency))
}

// Fault is Node.Fault.
func (s *Server) Fault(fault Fault) {
	s.t.Helper()
	s.must(s.Node.Fault(fault))
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

// ClientFrom is Node.ClientFrom.
func (s *Server) ClientFrom(address string) *http.Client {
	s.t.Helper()
	client, err := s.Node.ClientFrom(address)
	s.must(err)
	return client
}

// Restart is Node.Restart.
func (s *Server) Restart() {
	s.t.Helper()
	s.must(s.Node.Restart())
}

// Crash is Node.Crash.
func (s *Server) Crash() {
	s.t.Helper()
	s.must(s.Node.Crash())
}

// Snapshot is Node.Snapshot.
func (s *Server) Snapshot() *State {
	s.t.Helper()
	state, err := s.Node.Snapshot()
	s.must(err)
	return state
}

// Restore is Node.Restore.
func (s *Server) Restore(state *State) {
	s.t.Helper()
	s.must(s.Node.Restore(state))
}

// Announce is Node.Announce.
func (s *Server) Announce(requiredAt time.Time) {
	s.t.Helper()
	s.must(s.Node.Announce(requiredAt))
}

// Code is Node.Code.
func (s *Server) Code(email string) string {
	s.t.Helper()
	code, err := s.Node.Code(email)
	s.must(err)
	return code
}

// Key is Node.Key.
func (s *Server) Key() string {
	s.t.Helper()
	key, err := s.Node.Key()
	s.must(err)
	return key
}

// Keys is Node.Keys.
func (s *Server) Keys(count int) []string {
	s.t.Helper()
	keys, err := s.Node.Keys(count)
	s.must(err)
	return keys
}

// KeyOf is Node.KeyOf.
func (s *Server) KeyOf(email string) string {
	s.t.Helper()
	key, err := s.Node.KeyOf(email)
	s.must(err)
	return key
}

// SetQuota is Node.SetQuota.
func (s *Server) SetQuota(who string, day, minute int) {
	s.t.Helper()
	s.must(s.Node.SetQuota(who, day, minute))
}

// Suspend is Node.Suspend.
func (s *Server) Suspend(who string) {
	s.t.Helper()
	s.must(s.Node.Suspend(who))
}

// Unsuspend is Node.Unsuspend.
func (s *Server) Unsuspend(who string) {
	s.t.Helper()
	s.must(s.Node.Unsuspend(who))
}

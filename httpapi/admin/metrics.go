package admin

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/tasard/tasard/engine"
)

const (
	metricsWriteTimeout = 30 * time.Second
	metricsIdleTimeout  = 2 * time.Minute // scrapes come every 15 s or so over one connection
)

// The state of the node.
type (
	// Readiness is the state of the node for its operator, with causes.
	Readiness struct {
		Status         engine.Readiness   `json:"status"`
		Conditions     []engine.Condition `json:"conditions"`
		Version        string             `json:"version"`
		Log            Log                `json:"log"`
		Mail           *MailStats         `json:"mail,omitempty"` // nil: there is no mail server
		FailingSources []FailingSource    `json:"failingSources,omitempty"`
	}
	// Log is the state of the log at the start.
	Log struct {
		LastRecord    uint64 `json:"lastRecord"`
		Snapshot      uint64 `json:"snapshot"`
		TornBytes     int64  `json:"tornBytes"`
		AmbiguousTail bool   `json:"ambiguousTail"`
		Failure       string `json:"failure,omitempty"` // why the node stops
	}
	// MailStats counts login codes by outcome.
	MailStats struct {
		Waiting     int       `json:"waiting"`     // in the queue or being sent
		Sent        uint64    `json:"sent"`        // accepted by the mail server
		Refused     uint64    `json:"refused"`     // by the mail server, permanently
		Exhausted   uint64    `json:"exhausted"`   // all attempts failed
		Expired     uint64    `json:"expired"`     // the code expired first
		Replaced    uint64    `json:"replaced"`    // by a newer code for the same address
		Abandoned   uint64    `json:"abandoned"`   // at the end of the node
		Dropped     uint64    `json:"dropped"`     // the queue was full
		Failures    uint64    `json:"failures"`    // failed attempts
		CircuitOpen bool      `json:"circuitOpen"` // no attempts for a while
		LastSent    time.Time `json:"lastSent,omitzero"`
	}
	// FailingSource is a source whose last collection failed.
	FailingSource struct {
		ID      string `json:"id"`
		State   string `json:"state"`
		Failure string `json:"failure"`
	}
)

func (s *Server) readiness(w http.ResponseWriter, _ *http.Request) {
	state := s.config.Readiness()
	writeJSON(w, readinessStatus(state.Status), state)
}

// readinessStatus returns the HTTP status for load balancers and service managers.
func readinessStatus(r engine.Readiness) int {
	if r == engine.Unavailable {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// public returns the handler of ServeMetrics. Profiles and operations are only at the socket.
func (s *Server) public() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+MetricsPath, s.config.Metrics)
	mux.HandleFunc("GET "+livezPath, func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, struct {
			Status string `json:"status"`
		}{"live"})
	})
	mux.HandleFunc("GET "+ReadyzPath, func(w http.ResponseWriter, _ *http.Request) {
		state := s.config.Readiness()
		writeJSON(w, readinessStatus(state.Status), struct { // only what any client may know
			Status     engine.Readiness   `json:"status"`
			Conditions []engine.Condition `json:"conditions"`
		}{state.Status, state.Conditions})
	})
	return mux
}

// ServeMetrics starts to serve metrics and health to Prometheus on a TCP listener. Every client that reaches it can
// read them. They contain no secrets. Stop waits for its goroutine.
func (s *Server) ServeMetrics(listener net.Listener) {
	log, address := s.config.Logger, listener.Addr().String()
	log.Info("metrics are at http://" + address + MetricsPath)
	if addr, err := netip.ParseAddrPort(address); err == nil && !addr.Addr().IsLoopback() {
		log.Warn("every client that reaches this address can read the metrics: traffic, number of accounts, health; no secrets", "address", address)
	}
	server := &http.Server{Handler: s.public(), ReadTimeout: readTimeout, WriteTimeout: metricsWriteTimeout, IdleTimeout: metricsIdleTimeout}
	s.serve(server, listener, "the listener of metrics", "metrics are not answered any more")
}

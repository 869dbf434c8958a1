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
	metricsIdleTimeout  = 2 * time.Minute // scrapes come every quarter of a minute or so, over one connection
)

// What is told about the node as a whole.
type (
	// Readiness is how the node is, for its operator alone: it names causes.
	Readiness struct {
		Status         engine.Readiness   `json:"status"`
		Conditions     []engine.Condition `json:"conditions"`
		Version        string             `json:"version"`
		Log            Log                `json:"log"`
		Mail           *MailStats         `json:"mail,omitempty"` // nil: there is no mail server
		FailingSources []FailingSource    `json:"failingSources,omitempty"`
	}
	// Log is what the start found.
	Log struct {
		LastRecord    uint64 `json:"lastRecord"`
		Snapshot      uint64 `json:"snapshot"`
		TornBytes     int64  `json:"tornBytes"`
		AmbiguousTail bool   `json:"ambiguousTail"`
		Failure       string `json:"failure,omitempty"` // why the node stops
	}
	// MailStats are what became of login codes.
	MailStats struct {
		Waiting     int    // in the queue or on their way
		Sent        uint64 // taken by the mail server
		Refused     uint64 // by the mail server, for good
		Exhausted   uint64 // no try left
		Expired     uint64 // the code ran out first
		Replaced    uint64 // by a newer letter to the same address
		Abandoned   uint64 // at the end of the node
		Dropped     uint64 // not taken: the queue was full
		Failures    uint64 // tries that failed
		CircuitOpen bool   // the mail server is left in peace for a while
		LastSent    time.Time
	}
	// FailingSource gave nothing when it was asked last.
	FailingSource struct {
		ID      string `json:"id"`
		State   string `json:"state"`
		Failure string `json:"failure"`
	}
)

func (s *Server) readiness(w http.ResponseWriter, _ *http.Request) {
	shown := s.config.Readiness()
	writeJSON(w, readinessStatus(shown.Status), shown)
}

// readinessStatus is what a balancer or a service manager goes by.
func readinessStatus(r engine.Readiness) int {
	if r == engine.Unavailable {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// public is what ServeMetrics answers. Profiles and everything else of the socket stay there.
func (s *Server) public() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+MetricsPath, s.config.Metrics)
	mux.HandleFunc("GET "+livezPath, func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, struct {
			Status string `json:"status"`
		}{"live"})
	})
	mux.HandleFunc("GET "+ReadyzPath, func(w http.ResponseWriter, _ *http.Request) {
		whole := s.config.Readiness()
		writeJSON(w, readinessStatus(whole.Status), struct { // without what only its operator may know
			Status     engine.Readiness   `json:"status"`
			Conditions []engine.Condition `json:"conditions"`
		}{whole.Status, whole.Conditions})
	})
	return mux
}

// ServeMetrics answers what a listener for Prometheus over TCP accepts: metrics and health, and nothing that changes the node or shows whose it
// is. Any client that reaches it may ask. Stop waits for its goroutine.
func (s *Server) ServeMetrics(listener net.Listener) {
	log, at := s.config.Logger, listener.Addr().String()
	log.Info("metrics are at http://" + at + MetricsPath)
	if parsed, err := netip.ParseAddrPort(at); err == nil && !parsed.Addr().IsLoopback() {
		log.Warn("metrics can be read by whoever reaches this address: traffic, number of accounts, health; no secret is among them", "address", at)
	}
	server := &http.Server{Handler: s.public(), ReadTimeout: readTimeout, WriteTimeout: metricsWriteTimeout, IdleTimeout: metricsIdleTimeout}
	s.serve(server, listener, "the listener of metrics", "metrics are not answered any more")
}

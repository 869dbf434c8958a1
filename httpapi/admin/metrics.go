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
	metricsIdleTimeout  = 2 * time.Minute // Prometheus sends a request every 15 s or so, on the same connection
)

// Responses about the state of the node.
type (
	// Readiness is the state of the node for operators. The conditions include the causes of failures.
	Readiness struct {
		Status         engine.Readiness   `json:"status"`
		Conditions     []engine.Condition `json:"conditions"`
		Version        string             `json:"version"`
		Log            Log                `json:"log"`
		Mail           any                `json:"mail,omitempty"` // the counts of package mail; nil without a mail server
		FailingSources []FailingSource    `json:"failingSources,omitempty"`
	}
	// Log describes the node's log of all changes.
	Log struct {
		LastRecord    uint64 `json:"lastRecord"`        // sequence number of the newest record
		Snapshot      uint64 `json:"snapshot"`          // sequence number of the newest snapshot
		TornBytes     int64  `json:"tornBytes"`         // size of an incomplete last write that was cut off when the node started
		AmbiguousTail bool   `json:"ambiguousTail"`     // acknowledged records may be missing from the end of the log
		Failure       string `json:"failure,omitempty"` // why the node is stopping
	}
	// FailingSource is a source of rates whose newest collection failed.
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

// readinessStatus returns the HTTP status of a health response.
func readinessStatus(r engine.Readiness) int {
	if r == engine.Unavailable {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// public returns the handler of ServeMetrics.
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
		writeJSON(w, readinessStatus(state.Status), struct { // without the operator's fields of Readiness
			Status     engine.Readiness   `json:"status"`
			Conditions []engine.Condition `json:"conditions"`
		}{state.Status, state.Conditions})
	})
	return mux
}

// ServeMetrics starts a goroutine that serves metrics and health on a TCP listener, for Prometheus. Every client that
// can connect can read them; they contain no secrets.
func (s *Server) ServeMetrics(listener net.Listener) {
	log, address := s.config.Logger, listener.Addr().String()
	log.Info("metrics are at http://" + address + MetricsPath)
	if addr, err := netip.ParseAddrPort(address); err == nil && !addr.Addr().IsLoopback() {
		log.Warn("every client that reaches this address can read the metrics: traffic, number of accounts, health; no secrets", "address", address)
	}
	server := &http.Server{Handler: s.public(), ReadTimeout: readTimeout, WriteTimeout: metricsWriteTimeout, IdleTimeout: metricsIdleTimeout}
	s.serve(server, listener, "the listener of metrics", "metrics can no longer be read")
}

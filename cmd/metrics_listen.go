package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/engine"
)

const (
	livezPath           = "/livez"
	metricsHeaderMax    = 8 << 10 // bytes
	metricsReadTimeout  = 5 * time.Second
	metricsWriteTimeout = 30 * time.Second
	metricsIdleTimeout  = 2 * time.Minute // scrapes come every quarter of a minute or so, over one connection
)

// exposition is the listener for Prometheus over TCP: metrics and health, and nothing that changes the node or shows whose it is. Whoever
// reaches it may ask.
type exposition struct {
	server *http.Server
	url    string
	log    *slog.Logger
	ended  chan struct{} // closed when the server has ended
}

// addWatch declares what lets others watch the node: --metrics-listen and --access-log.
func addWatch(cmd *cobra.Command, o *frontOptions) {
	o.access = accessOff
	flags := cmd.Flags()
	flags.Var(closedAddressValue(&o.metrics), "metrics-listen",
		"an address for Prometheus: /metrics, /livez and /readyz, without a key; by default they are at the socket of tasard admin alone")
	flags.Var(wordValue(&o.access, accessOff, accessErrors, accessAll), "access-log",
		"write a line of JSON to stderr for each answer, or for errors: request id, route, status, time, bytes, network; no path, query or key")
}

// metricsListener is where Prometheus asks. The zero value is nowhere.
type metricsListener struct{ net.Listener }

// listenMetrics opens the address, "" for none.
func listenMetrics(address string) (metricsListener, error) {
	if address == "" {
		return metricsListener{}, nil
	}
	listener, err := listenFor(address, "--metrics-listen")
	return metricsListener{listener}, err
}

// Close is net.Listener's.
func (l metricsListener) Close() error {
	if l.Listener == nil {
		return nil
	}
	return l.Listener.Close()
}

// expose answers what the listener accepts, nil when there is none. stop waits for its goroutine.
func (m *management) expose(listener metricsListener) *exposition {
	if listener.Listener == nil {
		return nil
	}
	e := &exposition{url: "http://" + listener.Addr().String() + metricsPath, log: m.log, ended: make(chan struct{})}
	e.server = &http.Server{
		Handler: m.exposed(), ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelDebug), MaxHeaderBytes: metricsHeaderMax,
		ReadTimeout: metricsReadTimeout, WriteTimeout: metricsWriteTimeout, IdleTimeout: metricsIdleTimeout,
	}
	m.log.Info("metrics are at " + e.url)
	if at, err := netip.ParseAddrPort(listener.Addr().String()); err == nil && !at.Addr().IsLoopback() {
		m.log.Warn("metrics can be read by whoever reaches this address: traffic, number of accounts, health; no secret is among them", "address", at.String())
	}
	go func() {
		defer close(e.ended)
		if err := e.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			e.log.Error("metrics are not answered any more: their listener ended", "cause", err.Error())
		}
	}()
	return e
}

// stop lets scrapes in flight finish and waits for the server's end.
func (e *exposition) stop(ctx context.Context) error {
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownMax)
	defer cancel()
	err := e.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fail(exitFailStop, "stop the listener of metrics: %w", err), e.server.Close())
	}
	<-e.ended
	return err
}

// exposed is what the listener answers. Profiles and everything else of the management socket stay there.
func (m *management) exposed() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, m.metrics())
	mux.HandleFunc("GET "+livezPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", typeJSON)
		_, _ = io.WriteString(w, `{"status":"live"}`+"\n") // a caller that is gone needs no answer
	})
	mux.HandleFunc("GET "+readyzPath, m.publicReadiness)
	return mux
}

// publicReadiness is how the node is, without what only its operator may know.
func (m *management) publicReadiness(w http.ResponseWriter, _ *http.Request) {
	conditions := m.health.Conditions()
	shown := struct {
		Status     engine.Readiness `json:"status"`
		Conditions []shownCondition `json:"conditions"`
	}{Status: engine.ReadinessOf(conditions), Conditions: []shownCondition{}}
	for _, c := range conditions {
		shown.Conditions = append(shown.Conditions, shownCondition(c))
	}
	w.Header().Set("Content-Type", typeJSON)
	if shown.Status == engine.Unavailable {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(shown) // a caller that is gone needs no answer
}

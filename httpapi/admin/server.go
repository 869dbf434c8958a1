package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof" // its init function registers handlers on http.DefaultServeMux, which is not served
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

const (
	headerMax    = 8 << 10 // maximum size of a request's headers in bytes
	readTimeout  = 5 * time.Second
	writeTimeout = 5 * time.Minute // enough for a slow client to read a list of a million accounts
	idleTimeout  = 30 * time.Second
	shutdownMax  = 15 * time.Second // how long Stop waits for requests in flight
)

// Node is the part of a node that operators read and change.
type Node interface {
	account.Operator
	engine.Ingester
	KeyPolicy() account.KeyPolicy
	Rates(engine.RatesQuery) (*engine.Page[*engine.Rate], error)
	Quarantine(currency string) ([]engine.Quarantined, error)
	Execute(currency string, c engine.Command) (engine.Receipt, error)
}

// Config configures a Server.
type Config struct {
	Node         Node
	Catalogue    *engine.Catalogue
	DefaultQuota account.Quota // for accounts without their own quota
	Mail         string        // delivery of login codes: MailSMTP, MailLog or MailOff
	Clock        func() time.Time
	Logger       *slog.Logger

	Readiness func() Readiness
	Sources   func() Sources
	RunSource func(ctx context.Context, id string) (SourceRun, error)
	Cluster   func() engine.Cluster // nil if the node is not in a cluster
	Metrics   http.Handler          // for Prometheus
	// Backup writes a backup of the node to out. last is the sequence number of the last record in the backup.
	Backup func(out io.Writer) (last uint64, err error)
}

// Server serves the management API of a running node.
type Server struct {
	config     Config
	backupSlot backupSlot
	servers    []httpServer
}

type httpServer struct {
	*http.Server
	name string
	done chan struct{} // closed when Serve has returned
}

// New returns a server. ServeSocket and ServeMetrics start it.
func New(c Config) *Server { return &Server{config: c} }

// ServeSocket starts a goroutine that serves all operations on the socket. Operations fail until the node is ready.
func (s *Server) ServeSocket(socket net.Listener) {
	server := &http.Server{Handler: s.Handler(), ConnContext: withPeerName, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout}
	s.backupSlot.stopping = make(chan struct{})
	server.RegisterOnShutdown(sync.OnceFunc(func() { close(s.backupSlot.stopping) }))
	s.serve(server, socket, "the management listener", "tasard admin no longer gets responses")

}

// serve starts a goroutine that serves the listener until Stop. If serving ends earlier, the goroutine logs
// consequence, which says what operators can no longer do.
func (s *Server) serve(srv *http.Server, listener net.Listener, name, consequence string) {
	server := httpServer{srv, name, make(chan struct{})}
	server.MaxHeaderBytes, server.ErrorLog = headerMax, slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug)
	s.servers = append(s.servers, server)
	go func() {
		defer close(server.done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.config.Logger.Error(consequence+": "+name+" ended", "cause", err.Error())
		}
	}()
}

// Stop stops serving. It waits up to shutdownMax for requests in flight, and then closes the connections.
func (s *Server) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownMax)
	defer cancel()
	var problems []error
	for _, server := range s.servers {
		if err := server.Shutdown(ctx); err != nil {
			problems = append(problems, fmt.Errorf("stop %s: %w", server.name, errors.Join(err, server.Close())))
		}
		<-server.done
	}
	return errors.Join(problems...)
}

// Handler returns the handler of all operations.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	ListAccounts.register(mux, s.listAccounts)
	ShowAccount.register(mux, s.showAccount)
	SuspendAccount.register(mux, s.suspend)
	RestoreAccount.register(mux, s.restore)
	UnlockLogin.register(mux, s.unlock)
	LimitAccount.register(mux, s.limit)
	ShowKeyPolicy.register(mux, s.showKeyPolicy)
	Announce.register(mux, s.announce)
	WithdrawAnnouncement.register(mux, s.withdraw)
	ListQuarantine.register(mux, s.listQuarantine)
	ReleaseQuarantined.register(mux, s.release)
	RejectQuarantined.register(mux, s.reject)
	SetRate.register(mux, s.setRate)
	WithdrawRate.register(mux, s.withdrawRate)
	ImportObservations.register(mux, s.importObservations)
	ListSources.register(mux, func(*http.Request, NoBody) (Sources, error) { return s.config.Sources(), nil })
	RunSource.register(mux, s.runSource)
	ShowCluster.register(mux, s.showCluster)
	mux.HandleFunc("GET "+ReadyzPath, s.readiness)
	mux.Handle("GET "+MetricsPath, s.config.Metrics)
	mux.HandleFunc("GET "+backupPath, s.backup)
	for name, show := range map[string]http.HandlerFunc{"": pprof.Index, "profile": pprof.Profile, "trace": pprof.Trace, "symbol": pprof.Symbol} {
		mux.HandleFunc("GET "+profilePath+name, show)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, &engine.Error{Code: engine.CodeNotFound, Message: "this node does not know the operation; do node and command have the same version?"})
	})
	return mux
}

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

// SocketName is the file name of the management socket in a node's data directory.
const SocketName = "admin.sock"

const (
	socketMode         = 0o600
	socketPathBytesMax = 107 // limit of the operating system
)

// Errors of Listen, besides those of the operating system.
var (
	ErrSocketPath = errors.New("path too long for a socket")
	ErrInUse      = errors.New("another node uses it")
)

// Listen creates the management socket and listens on it. If the socket exists, Listen replaces it, or returns ErrInUse
// if another process listens on it.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := CheckSocket(path); err != nil {
		return nil, err
	}
	listener, err := bind(ctx, path)
	if errors.Is(err, syscall.EADDRINUSE) {
		if err := removeStale(path); err != nil {
			return nil, err
		}
		listener, err = bind(ctx, path)
	}
	if err != nil {
		var cause syscall.Errno
		if errors.As(err, &cause) {
			err = cause
		}
		return nil, fmt.Errorf("create the management socket %s: %w", path, err)
	}
	return listener, nil
}

// CheckSocket returns ErrSocketPath if the path is too long for a socket.
func CheckSocket(path string) error {
	if len(path) <= socketPathBytesMax {
		return nil
	}
	return fmt.Errorf("%w: %s has %d bytes; want at most %d", ErrSocketPath, path, len(path), socketPathBytesMax)
}

// bind creates the socket. It sets socketMode before the socket has a path, so that no other user can ever open it.
func bind(ctx context.Context, path string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		return conn.Control(func(fd uintptr) {
			_ = syscall.Fchmod(int(fd), socketMode) // on systems without support, Chmod below sets the mode
		})
	}}
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// removeStale removes a socket on which no process listens. If a process listens, removeStale returns ErrInUse. It has
// no context: a stop while the node starts is not an error of the socket.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the management socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s: a file is there, and it is not a socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was sent
		return fmt.Errorf("%s: %w", path, ErrInUse)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: can't find out whether %w: %w", path, ErrInUse, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of an ended node: %w", err)
	}
	return nil
}

// peerKey is the context key of the user at the other end of the socket; see withPeerName.
type peerKey struct{}

func withPeerName(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerName(conn))
}

// authorName returns the author of a change: the name in the request and the operating-system user, as in "ana (root)",
// or only the user.
func authorName(ctx context.Context, by Author) string {
	peer, _ := ctx.Value(peerKey{}).(string)
	if by.Name == "" {
		return peer
	}
	return fmt.Sprintf("%s (%s)", by.Name, peer)
}

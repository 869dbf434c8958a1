package mcp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tasard/tasard/httpapi/client"
)

// Name is what the service is called where its rates are shown.
const Name = "tasard"

// messageBytesMax is the longest message that is read: calls of these tools are short.
const messageBytesMax = 64 << 10

// Config says whom the tools ask, and who may ask them.
type Config struct {
	// Client asks the node.
	Client *client.Client
	// Site is the public site that the attribution leads to. "" is where the client asks.
	Site string
	// Version is that of the program, for the other side's log. "" is unknown.
	Version string
	// Hosts are the names, without port, under which Handler may be reached besides those of this machine.
	Hosts []string
	// CallTimeout is how long one call may take, with all tries and waits. 0 is CallTimeoutDefault.
	CallTimeout time.Duration
	// Logger is told of calls that fail. Nil: nobody is.
	Logger *slog.Logger
}

// CallTimeoutDefault is less than the minute after which programs with a model give up.
const CallTimeoutDefault = 45 * time.Second

// Server answers calls of tools.
type Server struct {
	client      *client.Client
	site        string
	hosts       []string
	callTimeout time.Duration
	logger      *slog.Logger
	session     *sdk.Server
}

// instructions are for the model, before it chooses a tool.
const instructions = `Exchange rates of the Dominican Republic, as banks, savings associations and exchange houses publish them, and the official reference rate.
All rates are Dominican pesos (DOP) for one unit of foreign currency. operation is what the user does: buy = the user buys foreign currency (the venta of the institution applies),
sell = the user sells it (the compra applies). Amounts are in foreign currency, as decimal text. Use the amounts as they are given and don't calculate them again.
Show with every rate its institution, its date and the attribution; rates are informational and may change. Days are those of Santo Domingo.`

// New makes a server with all tools.
func New(config Config) (*Server, error) {
	if config.Client == nil {
		return nil, errors.New("mcp: no client to ask the node with")
	}
	s := &Server{client: config.Client, site: cmp.Or(config.Site, config.Client.BaseURL()), hosts: config.Hosts, logger: config.Logger, callTimeout: cmp.Or(config.CallTimeout, CallTimeoutDefault)}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	s.session = sdk.NewServer(
		&sdk.Implementation{Name: Name, Title: "Dominican exchange rates", Version: cmp.Or(config.Version, "unknown"), WebsiteURL: s.site},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{}},
	)
	return s, s.addTools()
}

// Serve answers one client, line by line, until the stream has ended and what was asked is answered (nil), or ctx ends. A read that can't be woken, as of standard input, may outlast
// ctx by as long as the process does.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	closer, closes := in.(io.ReadCloser)
	if !closes {
		closer = io.NopCloser(in)
	}
	err := s.session.Run(ctx, drainingTransport{&sdk.IOTransport{Reader: closer, Writer: nopCloseWriter{out}, MaxLineLength: messageBytesMax}})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// nopCloseWriter is a writer that whoever opened it closes.
type nopCloseWriter struct{ io.Writer }

// Close is io.Closer.
func (nopCloseWriter) Close() error { return nil }

// Handler answers over streamable HTTP, at whichever path it is put.
func (s *Server) Handler() http.Handler {
	protocol := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.session }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: messageBytesMax, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // ours knows the names of Config.Hosts too
	})
	return s.guard(http.NewCrossOriginProtection().Handler(protocol))
}

// guard lets in whoever calls the server by a name that is its own.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if !s.isKnownHost(r.Host) || origin != "" && !s.isKnownOrigin(origin) {
			http.Error(w, "this server is not called that, or the page that asks is not its own", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isKnownHost tells whether a host, with or without port, is this machine or one of Config.Hosts.
func (s *Server) isKnownHost(host string) bool {
	at := url.URL{Host: host}
	name := strings.ToLower(at.Hostname())
	if address, err := netip.ParseAddr(name); err == nil && address.IsLoopback() {
		return true
	}
	return name == "localhost" || slices.ContainsFunc(s.hosts, func(known string) bool { return strings.EqualFold(known, name) })
}

// isKnownOrigin is isKnownHost for the origin of a page. CrossOriginProtection holds its port against that of the server.
func (s *Server) isKnownOrigin(origin string) bool {
	at, err := url.Parse(origin)
	return err == nil && s.isKnownHost(at.Host)
}

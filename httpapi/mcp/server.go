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

// Name is the name of the service in attributions.
const Name = "tasard"

// messageBytesMax is the maximum size of a message from a client.
const messageBytesMax = 64 << 10

// Config configures a Server. Client is required.
type Config struct {
	// Client sends requests to the node.
	Client *client.Client
	// Site is the URL of the service in attributions. "" = Client.BaseURL().
	Site string
	// Version is the version of the program. "" = unknown.
	Version string
	// Hosts are host names without port that Handler accepts besides localhost and loopback addresses.
	Hosts []string
	// CallTimeout is the timeout of a tool call, including retries. 0 = CallTimeoutDefault.
	CallTimeout time.Duration
	// Logger logs tool calls that fail. nil discards them.
	Logger *slog.Logger
}

// CallTimeoutDefault is shorter than a minute, the usual timeout of MCP clients.
const CallTimeoutDefault = 45 * time.Second

// Server serves the tools to language models. It is safe for concurrent use.
type Server struct {
	client      *client.Client
	site        string
	hosts       []string
	callTimeout time.Duration
	logger      *slog.Logger
	session     *sdk.Server
}

// instructions tell the model how to use the tools.
const instructions = `Exchange rates of the Dominican Republic, as banks, savings associations and exchange houses publish them, and the official reference rate.
All rates are Dominican pesos (DOP) for one unit of foreign currency. operation is what the user does: buy = the user buys foreign currency (the venta of the institution applies),
sell = the user sells it (the compra applies). Amounts are in foreign currency, as decimal text. Use the amounts as they are given and don't calculate them again.
Show with every rate its institution, its date and the attribution; rates are informational and may change. Days are those of Santo Domingo.`

// New returns a server with all tools.
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

// Serve serves one client, which sends a message on each line of in. It returns nil when in has ended and all requests
// are answered. If ctx is done before, it returns an error. A read from standard input cannot be interrupted, so it
// then goes on in the background.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	closer, ok := in.(io.ReadCloser)
	if !ok {
		closer = io.NopCloser(in)
	}
	err := s.session.Run(ctx, drainingTransport{&sdk.IOTransport{Reader: closer, Writer: nopCloseWriter{out}, MaxLineLength: messageBytesMax}})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// nopCloseWriter ignores Close, because the caller of Serve closes the writer.
type nopCloseWriter struct{ io.Writer }

// Close implements io.Closer.
func (nopCloseWriter) Close() error { return nil }

// Handler serves the tools over streamable HTTP.
func (s *Server) Handler() http.Handler {
	protocol := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.session }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: messageBytesMax, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // guard checks the host instead, with Config.Hosts
	})
	return s.guard(http.NewCrossOriginProtection().Handler(protocol))
}

// guard rejects requests for unknown hosts.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isKnownHost(r.Host) {
			http.Error(w, "unknown host name; the operator of this server can allow it with --http-name", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isKnownHost reports whether the Host of a request, with or without port, is localhost, a loopback address or one of
// Config.Hosts.
func (s *Server) isKnownHost(host string) bool {
	hostURL := url.URL{Host: host}
	name := strings.ToLower(hostURL.Hostname())
	if address, err := netip.ParseAddr(name); err == nil && address.IsLoopback() {
		return true
	}
	return name == "localhost" || slices.ContainsFunc(s.hosts, func(allowed string) bool { return strings.EqualFold(allowed, name) })
}

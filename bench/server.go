//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/apitest"
)

const (
	responseTimeout = 60 * time.Second
	// nodeQuotaDay and nodeQuotaMinute are the largest quotas that a node accepts. A load would use up the default
	// quotas within a second.
	nodeQuotaDay    = "100000000"
	nodeQuotaMinute = "60000"
	// listeningText precedes the address in the output of the node and of the bare server.
	listeningText = "listening on http"
)

// server is a running server: a node, or a baseline, with which the node is compared.
type server struct {
	certificate *certificate // nil without TLS
	address     string
	*process
}

// errNoNginx means that goals with the baseline nginx can't be measured.
var errNoNginx = errors.New("nginx: it is not installed (Debian: nginx-light)")

// nodeFlags are the flags with which a node is measured. The first three raise limits that a load from one address
// would exceed. measuredFlags also trusts the proxy of goal F1p.
func nodeFlags() []string {
	return []string{"--connections-per-address", "0", "--quota-day", nodeQuotaDay, "--quota-minute", nodeQuotaMinute, "--no-collect", "--listen", "127.0.0.1:0", "--log-format", "text"}
}

func measuredFlags() []string { return append(nodeFlags(), "--trusted-proxy", "127.0.0.0/8") }

// startNode runs tasard serve on the data of a fixture and waits until the node returns rates. program is the path of
// tasard. flags are further flags of tasard serve. A flag in flags overrides the same flag in nodeFlags.
func startNode(ctx context.Context, program string, f *fixture, core int, flags ...string) (*server, error) {
	argv := append([]string{program, "serve", "--data", f.dir}, nodeFlags()...)
	if f.certificate != nil {
		argv = append(argv, "--tls-cert", f.certificate.file, "--tls-key", f.certificate.key)
	}
	s := &server{certificate: f.certificate}
	return s, s.start(ctx, "node", core, append(argv, flags...)...)
}

// startBare runs the bare server, which sends a response from memory to every request. It first writes the response to
// file. certificate is nil for plain HTTP.
func startBare(ctx context.Context, self, file string, response []byte, certificate *certificate) (*server, error) {
	if err := os.WriteFile(file, response, 0o600); err != nil {
		return nil, fmt.Errorf("write the response of the bare server: %w", err)
	}
	argv := []string{self, bareName, file}
	if certificate != nil {
		argv = append(argv, certificate.file, certificate.key)
	}
	s := &server{certificate: certificate}
	return s, s.start(ctx, bareName, serverCore, argv...)
}

// start starts the process of s and waits for its first response. If there is none, start kills the process.
func (s *server) start(ctx context.Context, name string, core int, argv ...string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if s.process, err = startProcess(name, core, argv...); err != nil {
		return err
	}
	if s.address == "" { // the process prints it
		var line string
		line, err = s.awaitLine(ctx, listeningText)
		_, line, _ = strings.Cut(line, "://")
		s.address, _, _ = strings.Cut(strings.TrimSpace(strings.ReplaceAll(line, `"`, " "))+" ", " ")
	}
	if err == nil {
		err = s.awaitResponse(ctx)
	}
	if err != nil {
		s.kill()
	}
	return err
}

// awaitResponse sends requests until a response has status 200 or 304. The bare server may have a 304 in memory.
func (s *server) awaitResponse(ctx context.Context) error {
	lastResponse, template := "", requestTemplate{path: bestPath}
	err := s.await(ctx, "a response", func() bool {
		_, response, err := s.ask(ctx, template.request(""))
		if err == nil && (response.StatusCode() == fasthttp.StatusOK || response.StatusCode() == fasthttp.StatusNotModified) {
			return true
		}
		lastResponse = fmt.Sprintf("%v %.300s", err, response.Body())
		return false
	})
	if err != nil {
		return fmt.Errorf("%w; its last response: %s", err, lastResponse)
	}
	return nil
}

// ask sends a request on a new connection and returns the response, both raw and parsed.
func (s *server) ask(ctx context.Context, request []byte) ([]byte, *fasthttp.Response, error) {
	var raw bytes.Buffer
	response := new(fasthttp.Response)
	conn, err := (&net.Dialer{Timeout: responseTimeout}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, response, err
	}
	if s.certificate != nil {
		conn = tls.Client(conn, s.certificate.client)
	}
	defer func() { _ = conn.Close() }() // an error is irrelevant: the response has been read
	if err = conn.SetDeadline(time.Now().Add(responseTimeout)); err == nil {
		_, err = conn.Write(request)
	}
	if err == nil {
		err = response.Read(bufio.NewReader(io.TeeReader(conn, &raw)))
	}
	return raw.Bytes(), response, err
}

// cpu returns the CPU time of the server.
func (s *server) cpu() (time.Duration, error) { return cpuTime(s.cmd.Process.Pid) }

// runBare runs the bare server, a baseline for the node: it answers every request with one response from memory. It
// uses the same HTTP library and limits as the node, but none of the node's code. args are those of the subcommand
// bench bare FILE [CERTIFICATE KEYFILE]; FILE contains a response of a node.
func runBare(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 && len(args) != 3 {
		return fmt.Errorf("bench bare: want FILE, and perhaps a certificate and its key; found %q", args)
	}
	raw, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	handler, err := bareHandler(raw)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() }) // open connections are closed when the process exits
	defer stop()
	if _, err := fmt.Fprintln(out, listeningText+"://"+listener.Addr().String()); err != nil {
		return err
	}
	server := bareServer(handler)
	if len(args) == 1 {
		err = server.Serve(listener)
	} else {
		err = server.ServeTLS(listener, args[1], args[2])
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// bareServer has the settings and limits of the node's server; a test compares them with those in package httpapi.
func bareServer(handler fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		Handler: handler,

		ReadTimeout:        5 * time.Second,
		WriteTimeout:       5 * time.Second,
		IdleTimeout:        time.Minute,
		ReadBufferSize:     4 << 10,
		WriteBufferSize:    12 << 10,
		MaxRequestBodySize: 4 << 10,
		Concurrency:        2 * 16_384,

		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		DisablePreParseMultipartForm: true,
	}
}

// bareHandler returns a handler that sends the same response to every request. Header field names keep the node's
// spelling; by default the library would normalize them.
func bareHandler(raw []byte) (fasthttp.RequestHandler, error) {
	response := new(fasthttp.Response)
	response.Header.DisableNormalizing()
	if err := response.Read(bufio.NewReader(bytes.NewReader(raw))); err != nil {
		return nil, fmt.Errorf("read the response to send: %w", err)
	}
	response.Header.Del(fasthttp.HeaderDate) // the library sets it
	return func(ctx *fasthttp.RequestCtx) {
		response.Header.CopyTo(&ctx.Response.Header)
		ctx.Response.SetBodyRaw(response.Body())
	}, nil
}

// nginxConfig configures nginx with one server and one file, without an access log. Its formatting verbs are: the user
// directive, the directory, the directives of the http block, the address, the path and the content type.
const nginxConfig = `daemon off;
worker_processes 1;
%[1]spid %[2]s/nginx.pid;
error_log stderr error;
events {
	worker_connections 4096;
}
http {
	access_log off;
	server_tokens off;
	%[3]s
	keepalive_timeout 1h;
	keepalive_requests 1000000000;
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	types {}
	server {
		listen %[4]s;
		location = "%[5]s" {
			alias "%[2]s/body.json";
			default_type "%[6]s";
		}
	}
}
`

// Directives of nginx for sending files: those that are common, and those that are fastest for a small file. The common
// ones, sendfile and tcp_nopush, cost two more system calls for each response.
const (
	nginxCommon = "sendfile on; tcp_nopush on;"
	nginxTuned  = "sendfile off; open_file_cache max=1000 inactive=1h; open_file_cache_valid 1h;"
)

// startNginx runs nginx, which serves the body of the node's response as a static file. nginx ignores the query,
// checks neither keys nor quotas, and sends fewer header fields than the node. dir is a directory for its files.
func startNginx(ctx context.Context, dir string, node *server, key string, q *requestTemplate, tuned bool) (*server, error) {
	path, err := exec.LookPath("nginx")
	if err != nil { // Debian's directory for nginx may be missing in PATH
		if path, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, errNoNginx
		}
	}
	_, response, err := node.ask(ctx, q.request(key))
	if err != nil {
		return nil, err
	}
	s, name, settings, user := &server{}, nginxName, nginxCommon, ""
	if tuned {
		name, settings = nginxTunedName, nginxTuned
	}
	if os.Geteuid() == 0 {
		user = "user root root;\n" // otherwise nginx's worker could not read files of root
	}
	s.address, err = freeAddress()
	location, _, _ := strings.Cut(q.path, "?")
	file, config := filepath.Join(dir, "nginx.conf"), fmt.Sprintf(nginxConfig, user, dir, settings, s.address, location, response.Header.ContentType())
	if err = errors.Join(err, os.WriteFile(file, []byte(config), 0o600), os.WriteFile(filepath.Join(dir, "body.json"), response.Body(), 0o600)); err != nil {
		return nil, fmt.Errorf("configure nginx: %w", err)
	}
	return s, s.start(ctx, name, serverCore, path, "-e", "stderr", "-p", dir, "-c", file)
}

// freeAddress returns a loopback address with a free port.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("look for a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// fixtureSeed makes the rates the same in each run, except for their dates. fixtureDays is the number of days of rates
// before today.
const fixtureSeed, fixtureDays = 20, 30

// fixture is a data directory for a node: with the simulated market of the demo, and accounts with one API key each.
type fixture struct {
	dir         string            // the data directory; a node that uses it changes its contents
	keys        []string          // one API key for each account
	certificate *certificate      // of the node; nil if it serves plain HTTP
	market      *simulated.Market // as it was when the fixture was made
}

// certificate is a certificate for the loopback address.
type certificate struct {
	file, key string      // paths of the PEM files with the certificate and its key
	client    *tls.Config // configuration of a client that trusts the certificate
}

// newCertificate writes the certificate of package httptest and its key into the directory dir.
func newCertificate(dir string) (*certificate, error) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		return nil, err
	}
	c := &certificate{file: filepath.Join(dir, "tls.pem"), key: filepath.Join(dir, "tls.key")}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c.client = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
	return c, errors.Join(
		os.WriteFile(c.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600),
		os.WriteFile(c.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}

// newFixture creates the data in dir, which must be new or empty.
func newFixture(dir string, accounts int) (*fixture, error) {
	f := &fixture{dir: filepath.Join(dir, "data"), market: simulated.NewMarket(fixtureSeed)}
	node, err := apitest.Open(apitest.FollowClock(time.Now), apitest.Lenient())
	if err != nil {
		return nil, fmt.Errorf("make the data of a node: %w", err)
	}
	var state *apitest.State
	err = node.Do(func(s *apitest.Server) {
		today := engine.DateOf(time.Now())
		s.Observe(asReal(f.market.History(today-fixtureDays, today-1))...)
		s.Observe(asReal(f.market.Refreshes(time.Now()))...)
		f.keys, state = s.Keys(accounts), s.Snapshot()
	})
	if err = errors.Join(err, node.Close()); err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o700), state.Write(f.dir))
	}
	if err != nil {
		return nil, fmt.Errorf("make the data of a node: %w", err)
	}
	return f, nil
}

// asReal renames the sources of made-up rates to those that they stand for. A node would refuse the others.
func asReal(list []engine.Refresh) []engine.Refresh {
	for i := range list {
		list[i].SourceID = strings.TrimPrefix(list[i].SourceID, "demo-")
	}
	return list
}

// writeRefresh writes the next step of the market as an observations file, for tasard import.
func (f *fixture) writeRefresh(path string) error {
	text := []byte("observedAt,institutionId,currency,channel,kind,buy,sell,sourceId,effectiveDate,publishedAt\n")
	for _, refresh := range asReal(f.market.Refreshes(time.Now())) {
		for _, o := range refresh.Observations {
			text = fmt.Appendf(text, "%s,%s,%s,%s,%s,%s,%s,%s,,\n", refresh.ObservedAt.UTC().Format(time.RFC3339), o.InstitutionID, o.Currency, o.Channel, o.Kind, o.Buy, o.Sell, refresh.SourceID)
		}
	}
	return os.WriteFile(path, text, 0o600)
}

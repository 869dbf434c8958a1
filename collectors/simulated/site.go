package simulated

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// SiteConfig is what a Site is made of.
type SiteConfig struct {
	// Market is what the pages say, required. Its owner steps it; until the first step every institution is silent.
	Market *Market
	// Clock is what the pages take for now; nil = the instant of the market's last step, so that a page follows from the market
	// alone.
	Clock func() time.Time
	// Pace is how long Trickle waits before each byte; 0 = 1 s.
	Pace time.Duration
}

// Site is the sites of all institutions in one server on loopback, at their real addresses for whoever dials through it.
// Its certificates are signed by an authority of its own that lives as long as it does.
type Site struct {
	market       *Market
	clock        func() time.Time
	pace         time.Duration
	definitions  *source.Set
	routes       map[string][]*route // by method and host
	hosts        []string
	faults       activeFaults
	observe      func(*http.Request) // of tests: called with every request, nil = none
	blanks       func() []byte       // a member of a gzip stream, of very many blanks
	certificates certificateSet

	listeners []net.Listener
	servers   []*http.Server
	serving   sync.WaitGroup // accept loops
	open      sync.WaitGroup // connections
	closing   chan struct{}
}

// NewSite makes the sites of a market. They answer for every address of the definitions that the program carries.
func NewSite(c SiteConfig) *Site {
	s := &Site{
		market: c.Market, clock: c.Clock, pace: c.Pace, definitions: source.DefaultSet(), routes: map[string][]*route{},
		faults: activeFaults{byTarget: map[string]activeFault{}}, blanks: sync.OnceValue(gzippedBlanks), closing: make(chan struct{}),
	}
	if s.pace == 0 {
		s.pace = time.Second
	}
	for _, r := range allRoutes() {
		key := r.method + " " + r.host
		s.routes[key] = append(s.routes[key], &r)
		s.hosts = append(s.hosts, r.host)
	}
	for _, d := range s.definitions.Definitions() {
		s.attachSource(d)
	}
	slices.Sort(s.hosts)
	s.hosts = slices.Compact(s.hosts)
	return s
}

// attachSource notes which documents are those of a source, so that its faults can be told from its neighbours'.
func (s *Site) attachSource(d *source.Definition) {
	for page := range d.Pages {
		if r := s.documentRoute(d, page); r != nil {
			r.sources = append(r.sources, d.ID)
		}
		for _, request := range d.Pages[page].Requests {
			if address, err := url.Parse(request.URL); err == nil && address.Host != "" {
				s.hosts = append(s.hosts, address.Hostname())
			}
		}
	}
}

// documentRoute is where the document of a page comes from, nil when the site does not know its address.
func (s *Site) documentRoute(d *source.Definition, page int) *route {
	requests := d.Pages[page].Requests
	last := requests[len(requests)-1]
	for _, request := range slices.Backward(requests) {
		address, err := url.Parse(request.URL)
		if err != nil || request.URL == "" {
			continue
		}
		if last.AddressFrom == nil {
			return s.find(last.Method, address)
		}
		first := s.find(request.Method, address)
		if first == nil || first.nextPath == "" {
			return nil
		}
		address.Path, address.RawQuery = first.nextPath, ""
		return s.find(last.Method, address)
	}
	return nil
}

// find is the route of an address, nil when there is none.
func (s *Site) find(method string, address *url.URL) *route {
	path := cmp.Or(address.Path, "/")
	for _, r := range s.routes[cmp.Or(method, http.MethodGet)+" "+address.Hostname()] {
		if r.path == path && (r.query == "" || sameQuery(r.query, address)) {
			return r
		}
	}
	return nil
}

func sameQuery(want string, address *url.URL) bool {
	name, value, _ := strings.Cut(want, "=")
	return address.Query().Get(name) == value
}

// hostOf is the host of the first request of a source.
func hostOf(d *source.Definition) string {
	address, err := url.Parse(d.Pages[0].Requests[0].URL)
	if err != nil {
		return ""
	}
	return address.Hostname()
}

// Start listens on two free ports of loopback, one with TLS.
func (s *Site) Start() error {
	if err := s.certificates.generate(s.hosts); err != nil {
		return fmt.Errorf("make the certificates of the simulated site: %w", err)
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: s.certificate}
	for _, scheme := range []string{"https", "http"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return errors.Join(fmt.Errorf("listen for the simulated site: %w", err), s.Close())
		}
		s.listeners = append(s.listeners, listener)
		handler := http.Handler(http.HandlerFunc(redirectToHTTPS))
		if scheme == "https" {
			listener, handler = tls.NewListener(listener, secure), s
		}
		server := &http.Server{
			Handler: handler, ReadHeaderTimeout: 10 * time.Second, ConnState: s.count,
			ErrorLog: log.New(io.Discard, "", 0), // clients that refuse a certificate are the purpose of some faults
		}
		s.servers = append(s.servers, server)
		s.serving.Go(func() { _ = server.Serve(listener) }) // it ends by Close, with an error that says so
	}
	return nil
}

// count keeps the number of open connections, for Close.
func (s *Site) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.open.Done()
	case http.StateActive, http.StateIdle:
	}
}

// Close ends every connection and waits until nothing of the site runs any more.
func (s *Site) Close() error {
	select {
	case <-s.closing:
		return nil
	default:
		close(s.closing)
	}
	var errs []error
	for _, server := range s.servers {
		errs = append(errs, server.Close())
	}
	for _, listener := range s.listeners {
		if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	s.serving.Wait()
	for _, server := range s.servers { // connections that were accepted while the first Close ran
		errs = append(errs, server.Close())
	}
	s.open.Wait()
	return errors.Join(errs...)
}

// Dial leads every host to the site: port 443 to the listener with TLS, port 80 to the other one.
func (s *Site) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	listener, known := map[string]int{"443": 0, "80": 1}[port]
	if !known || len(s.listeners) == 0 {
		return nil, fmt.Errorf("dial %s: the simulated site is closed, or does not listen on that port", address)
	}
	return new(net.Dialer).DialContext(ctx, network, s.listeners[listener].Addr().String())
}

// Roots are the authorities that signed the certificates of the site; nil before Start.
func (s *Site) Roots() *x509.CertPool { return s.certificates.roots }

// Document is the document of a page of a source, with or without demo-, without any network: the same bytes as served, with
// the faults that change them. It is nil when there is no such page.
func (s *Site) Document(sourceID string, page int) *source.Document {
	d, ok := s.definitions.Find(strings.TrimPrefix(sourceID, demoPrefix))
	if !ok || page < 0 || page >= len(d.Pages) {
		return nil
	}
	at := s.documentRoute(d, page)
	if at == nil {
		return nil
	}
	requests := d.Pages[page].Requests
	request := requestOf(&requests[len(requests)-1], at)
	v := s.pageData(request, s.faults.find(Fault.ofAnswer, at.targets()...))
	made := v.document(at)
	return &source.Document{
		URL: request.URL.String(), ContentType: made.contentType, Body: made.body, FetchedAt: v.Now,
	}
}

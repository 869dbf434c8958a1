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

// Site serves the websites of all institutions on loopback. A client must connect with Dial, which maps the real host
// names to the Site, and trust the certificate authority in Roots.
type Site struct {
	market       *Market
	pace         time.Duration // time between two bytes of the fault Trickle
	definitions  *source.Set
	routes       map[string][]*route // addresses that the site serves, by method and host
	hosts        []string            // sorted
	faults       activeFaults
	blanks       func() []byte // for the fault Bomb: returns memberBytes blanks as a gzip member
	certificates certificateSet

	server  *http.Server
	address string         // host:port of the server; "" before Start
	serving sync.WaitGroup // the goroutine that accepts connections
	conns   sync.WaitGroup // open connections
	closing chan struct{}
}

// NewSite returns a site for a market. It has the pages that the built-in source definitions read. Before the first
// step of the market all responses have status 503.
func NewSite(market *Market) *Site {
	s := &Site{
		market: market, pace: time.Second, definitions: source.DefaultSet(), routes: map[string][]*route{},
		faults: activeFaults{byTarget: map[string]activeFault{}}, blanks: sync.OnceValue(gzippedBlanks), closing: make(chan struct{}),
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

// attachSource adds the id of a source to the routes that serve its documents, and the hosts of the source to s.hosts.
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

// documentRoute returns the route that serves the document of a page, or nil.
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
		start := s.find(request.Method, address)
		if start == nil || start.apiPath == "" {
			return nil
		}
		address.Path, address.RawQuery = start.apiPath, ""
		return s.find(last.Method, address)
	}
	return nil
}

// find returns the route of a method and an address, or nil.
func (s *Site) find(method string, address *url.URL) *route {
	path := cmp.Or(address.Path, "/")
	for _, r := range s.routes[cmp.Or(method, http.MethodGet)+" "+address.Hostname()] {
		if r.path == path && (r.query == "" || sameQuery(r.query, address)) {
			return r
		}
	}
	return nil
}

func sameQuery(param string, address *url.URL) bool {
	name, value, _ := strings.Cut(param, "=")
	return address.Query().Get(name) == value
}

// hostOf returns the host of the first request of a source.
func hostOf(d *source.Definition) string {
	address, err := url.Parse(d.Pages[0].Requests[0].URL)
	if err != nil {
		return ""
	}
	return address.Hostname()
}

// Start starts the server on a free loopback port.
func (s *Site) Start() error {
	if err := s.certificates.generate(s.hosts); err != nil {
		return fmt.Errorf("make the certificates of the simulated site: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the simulated site: %w", err)
	}
	s.address = listener.Addr().String()
	s.server = &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ConnState: s.trackConn,
		ErrorLog: log.New(io.Discard, "", 0), // clients reject faulty certificates, which net/http would log
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: s.certificate}
	s.serving.Go(func() { _ = s.server.Serve(tls.NewListener(listener, tlsConfig)) }) // after Close it returns ErrServerClosed
	return nil
}

// trackConn counts the open connections in s.conns.
func (s *Site) trackConn(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.conns.Done()
	case http.StateActive, http.StateIdle:
	}
}

// Close closes all connections and waits until they and all goroutines of the site have ended.
func (s *Site) Close() error {
	select {
	case <-s.closing:
		return nil
	default:
		close(s.closing)
	}
	if s.server == nil {
		return nil
	}
	err := s.server.Close()
	s.serving.Wait()
	err = errors.Join(err, s.server.Close()) // closes connections that were accepted during the first Close
	s.conns.Wait()
	return err
}

// Dial connects every host name to the site. It accepts only the port 443.
func (s *Site) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if _, port, err := net.SplitHostPort(address); err != nil || port != "443" || s.address == "" {
		return nil, fmt.Errorf("dial %s: the simulated site is closed, or does not listen on that port", address)
	}
	return new(net.Dialer).DialContext(ctx, network, s.address)
}

// Roots returns the certificate authority of the site. It returns nil before Start.
func (s *Site) Roots() *x509.CertPool { return s.certificates.roots }

// Document returns the document that the site serves for a page of a source, with active faults, but without the
// network. sourceID may have the prefix demo-. Document returns nil if there is no such page.
func (s *Site) Document(sourceID string, page int) *source.Document {
	d, ok := s.definitions.Find(strings.TrimPrefix(sourceID, demoPrefix))
	if !ok || page < 0 || page >= len(d.Pages) {
		return nil
	}
	rt := s.documentRoute(d, page)
	if rt == nil {
		return nil
	}
	requests := d.Pages[page].Requests
	request := requestOf(&requests[len(requests)-1], rt)
	v := s.pageData(request, s.faults.find(Fault.affectsResponse, rt.targets()...))
	doc := v.document(rt)
	return &source.Document{
		URL: request.URL.String(), ContentType: doc.contentType, Body: doc.body, FetchedAt: v.Now,
	}
}

package fetch

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// reachClient is a client whose connections all go to one server. dialed has the addresses that it asked for.
func reachClient(t *testing.T, trusted *httptest.Server, at string) (c *Client, dialed func() []string) {
	t.Helper()
	var mu sync.Mutex
	var addresses []string
	c = New(Config{
		Clock: clock, Pause: -1, Roots: trusted.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			mu.Lock()
			addresses = append(addresses, address)
			mu.Unlock()
			return new(net.Dialer).DialContext(ctx, network, at)
		},
	})
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(addresses)
	}
}

func echoUserAgent(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	_, _ = io.WriteString(w, r.UserAgent()+"|"+r.Header.Get("Accept-Language"))
}

// The requests of a source with a proxy go through it, and only they; the certificate of the site counts.
func TestProxy(t *testing.T) {
	site := httptest.NewTLSServer(http.HandlerFunc(echoUserAgent))
	defer site.Close()
	var copying sync.WaitGroup
	defer copying.Wait()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "example.com:443" {
			http.Error(w, "only example.com", http.StatusForbidden)
			return
		}
		far, err := net.Dial("tcp", site.Listener.Addr().String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		near, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
		copying.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
		copying.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
	}))
	defer proxy.Close()
	c, dialed := reachClient(t, site, proxy.Listener.Addr().String())
	d := get("https://example.com/")
	d.Proxy = "http://proxy.example.do:3128"
	wantDocument(t, c, d, userAgentDefault+"|es-DO,es;q=0.9")
	if got := dialed(); len(got) == 0 || slices.ContainsFunc(got, func(a string) bool { return a != "proxy.example.do:3128" }) {
		t.Errorf("dialed %v, want only the proxy", got)
	}
	direct, dialedDirectly := reachClient(t, site, site.Listener.Addr().String())
	wantDocument(t, direct, get("https://example.com/"), userAgentDefault+"|es-DO,es;q=0.9")
	if got := dialedDirectly(); slices.ContainsFunc(got, func(a string) bool { return a != "example.com:443" }) {
		t.Errorf("dialed %v, want only the site", got)
	}
}

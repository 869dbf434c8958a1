package conn

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// TestProxySearch: an address that sends many requests with X-Forwarded-For is logged once, unless it is trusted. Few
// requests from each of many addresses, or requests without the header, do not count. A request costs no allocation.
func TestProxySearch(t *testing.T) {
	const proxy = "10.1.2.3"
	trusted := netip.MustParseAddr("10.9.9.9")
	for name, tt := range map[string]struct {
		from   func(i int) string // address of the peer of a request
		header string
		want   string
	}{
		"proxy":           {func(int) string { return proxy }, "x-forwarded-for", proxy},
		"public proxy":    {func(int) string { return "203.0.113.9" }, "X-Forwarded-For", "203.0.113.0/24"},
		"beside clients":  {func(i int) string { return []string{proxy, fmt.Sprintf("198.51.100.%d", i%256)}[i%2] }, "X-Forwarded-For", proxy},
		"trusted":         {func(int) string { return "10.9.9.9" }, "X-Forwarded-For", ""},
		"many addresses":  {func(i int) string { return fmt.Sprintf("198.51.%d.%d", i/256, i%256) }, "X-Forwarded-For", ""},
		"another header":  {func(int) string { return proxy }, "X-Forwarded-Xyz", ""},
		"few":             {func(i int) string { return map[bool]string{true: proxy, false: "10.9.9.9"}[i < proxyRequestsMin-1] }, "X-Forwarded-For", ""},
		"IPv6 of clients": {func(int) string { return "2001:db8::1" }, "X-Forwarded-For", "2001:db8::/48"},
	} {
		var log bytes.Buffer
		l := Listen(&scriptedListener{}, Config{MaxConns: 1, Log: logTo(&log), ExemptClients: func(a netip.Addr) bool { return a == trusted }})
		raw, c := []byte("Host: a\r\n"+tt.header+": 192.0.2.1\r\n\r\n"), &Conn{}
		c.permit.listener = l
		one := func(peer netip.Addr) {
			var f HeadInfo
			if c.peer = peer; f.scan(raw) == "" && f.forwarded {
				c.noteForwarded()
			}
		}
		for i := range 1000 {
			one(netip.MustParseAddr(tt.from(i)))
		}
		if got := l.config.Counts.Proxies.Found(); got != tt.want {
			t.Errorf("%s: found %q, want %q", name, got, tt.want)
		}
		if lines := strings.Count(log.String(), "--trusted-proxy"); (lines == 1) != (tt.want != "") || lines > 1 {
			t.Errorf("%s: logged %d times:\n%s", name, lines, log.String())
		}
		unfound := netip.MustParseAddr("10.9.9.8")
		if n := testing.AllocsPerRun(20, func() { one(unfound) }); n != 0 {
			t.Errorf("%s: %v allocations for a request", name, n)
		}
	}
}

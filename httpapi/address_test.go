package httpapi

import (
	"net/netip"
	"strings"
	"testing"
)

// addressRow is a request as it comes in, and whose it is. An empty want means the peer.
type addressRow struct {
	name, peer string
	lines      []string
	want       string
}

// testProxies are trusted in the tests: a network, a host, an IPv6 network.
func testProxies() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("203.0.113.9/32"), netip.MustParsePrefix("2001:db8:ff::/48")}
}

// addressTable is what FuzzForwardedFor of package fields can't see: which peers are proxies, which headers count.
func addressTable() []addressRow {
	const proxy, outsider = "10.1.2.3", "198.51.100.4"
	xff := func(value string) []string { return []string{"X-Forwarded-For: " + value} }
	long := strings.Repeat("198.51.100.1, ", 10000)
	return []addressRow{
		{"no proxy, no header", outsider, nil, ""},
		{"no proxy", outsider, xff("192.0.2.1"), ""},
		{"no proxy, claims to be one", outsider, xff("192.0.2.1, 10.1.2.3"), ""},
		{"no proxy, every header", outsider, []string{"X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.2", "X-Real-IP: 192.0.2.3"}, ""},
		{"next to the network", "11.0.0.1", xff("192.0.2.1"), ""},
		{"next to the host", "203.0.113.10", xff("192.0.2.1"), ""},
		{"proxy, no header", proxy, nil, ""},
		{"proxy", proxy, xff("192.0.2.1"), "192.0.2.1"},
		{"the host", "203.0.113.9", xff("192.0.2.1"), "192.0.2.1"},
		{"IPv6 proxy", "2001:db8:ff::1", xff("192.0.2.1"), "192.0.2.1"},
		{"IPv6 next to it", "2001:db8:fe::1", xff("192.0.2.1"), ""},
		{"mapped proxy", "::ffff:10.1.2.3", xff("192.0.2.1"), "192.0.2.1"},
		{"two lines", proxy, []string{"X-Forwarded-For: 192.0.2.99", "X-Forwarded-For: 192.0.2.1"}, "192.0.2.1"},
		{"three lines, proxies last", proxy, []string{"X-Forwarded-For: 192.0.2.99", "x-forwarded-for: 192.0.2.1", "X-FORWARDED-FOR: 10.0.0.5,10.0.0.6"}, "192.0.2.1"},
		{"mapped", proxy, xff("::ffff:192.0.2.1"), "192.0.2.1"},
		{"unknown", proxy, xff("unknown"), ""},
		{"10,000 entries", proxy, xff(long + "192.0.2.1, 10.0.0.1"), "192.0.2.1"},
		{"10,000 proxies", proxy, xff("192.0.2.1" + strings.Repeat(", 10.0.0.1", 10000)), "192.0.2.1"},
		{"Forwarded", proxy, []string{"Forwarded: for=192.0.2.2"}, ""},
		{"X-Real-IP", proxy, []string{"X-Real-IP: 192.0.2.3"}, ""},
		{"others beside it", proxy, []string{"Forwarded: for=192.0.2.2", "X-Forwarded-For: 192.0.2.1", "X-Real-IP: 192.0.2.3", "X-Client-IP: 192.0.2.4"}, "192.0.2.1"},
	}
}

// TestS8_ClientAddress: the admitter and the accounts count the address that this finds (decision L8); without
// configured proxies no header counts.
func TestS8_ClientAddress(t *testing.T) {
	trusting, trustless := newFixtureWithLimits(t, func(c *Config) { c.TrustedProxies = testProxies() }), newFixtureWithLimits(t, nil)
	for _, row := range addressTable() {
		peer := netip.MustParseAddr(row.peer).Unmap()
		want := peer
		if row.want != "" {
			want = netip.MustParseAddr(row.want)
		}
		for g, want := range map[*fixture]netip.Addr{trusting: want, trustless: peer} {
			g.send(t, exchange{method: "GET", target: "/v1/currencies", lines: row.lines, peer: row.peer})
			if got := g.admitter.lastCaller(t).Address; got != want {
				t.Errorf("%s: %s, want %s", row.name, got, want)
			}
			for _, name := range []string{"codes-post", "sessions-post"} {
				e := accountGood()[name]
				e.peer, e.lines = row.peer, append(row.lines, jsonLine)
				if g.send(t, e); g.accounts.from != want {
					t.Errorf("%s, %s: %s, want %s", row.name, name, g.accounts.from, want)
				}
			}
		}
	}
}

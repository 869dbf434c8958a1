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

func addressTable() []addressRow {
	const proxy, stranger = "10.1.2.3", "198.51.100.4"
	xff := func(value string) []string { return []string{"X-Forwarded-For: " + value} }
	long := strings.Repeat("198.51.100.1, ", 10000)
	return []addressRow{
		{"no proxy, no header", stranger, nil, ""},
		{"no proxy", stranger, xff("192.0.2.1"), ""},
		{"no proxy, claims to be one", stranger, xff("192.0.2.1, 10.1.2.3"), ""},
		{"no proxy, every header", stranger, []string{"X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.2", "X-Real-IP: 192.0.2.3"}, ""},
		{"next to the network", "11.0.0.1", xff("192.0.2.1"), ""},
		{"next to the host", "203.0.113.10", xff("192.0.2.1"), ""},
		{"proxy, no header", proxy, nil, ""},
		{"proxy, empty header", proxy, xff(""), ""},
		{"proxy", proxy, xff("192.0.2.1"), "192.0.2.1"},
		{"the host", "203.0.113.9", xff("192.0.2.1"), "192.0.2.1"},
		{"IPv6 proxy", "2001:db8:ff::1", xff("192.0.2.1"), "192.0.2.1"},
		{"IPv6 next to it", "2001:db8:fe::1", xff("192.0.2.1"), ""},
		{"mapped proxy", "::ffff:10.1.2.3", xff("192.0.2.1"), "192.0.2.1"},
		{"made up on the left", proxy, xff("192.0.2.99, 192.0.2.1"), "192.0.2.1"},
		{"two proxies", proxy, xff("192.0.2.99, 192.0.2.1, 10.9.9.9"), "192.0.2.1"},
		{"a proxy's name made up on the left", proxy, xff("10.0.0.1, 192.0.2.1, 10.9.9.9"), "192.0.2.1"},
		{"proxies alone", proxy, xff("10.0.0.1, 10.0.0.2"), "10.0.0.1"},
		{"two lines", proxy, []string{"X-Forwarded-For: 192.0.2.99", "X-Forwarded-For: 192.0.2.1"}, "192.0.2.1"},
		{"three lines, proxies last", proxy, []string{"X-Forwarded-For: 192.0.2.99", "x-forwarded-for: 192.0.2.1", "X-FORWARDED-FOR: 10.0.0.5,10.0.0.6"}, "192.0.2.1"},
		{"the same twice", proxy, xff("192.0.2.1, 192.0.2.1"), "192.0.2.1"},
		{"no blanks", proxy, xff("192.0.2.99,192.0.2.1,10.0.0.1"), "192.0.2.1"},
		{"tabs and blanks", proxy, xff("192.0.2.99 ,\t 192.0.2.1 \t, 10.0.0.1"), "192.0.2.1"},
		{"empty entries", proxy, xff("192.0.2.99, 192.0.2.1,, ,"), "192.0.2.1"},
		{"commas alone", proxy, xff(",,,"), ""},
		{"port", proxy, xff("192.0.2.1:4711"), "192.0.2.1"},
		{"port too large", proxy, xff("192.0.2.1:65536"), ""},
		{"colon without port", proxy, xff("192.0.2.1:"), ""},
		{"IPv6", proxy, xff("2001:db8::1"), "2001:db8::1"},
		{"IPv6 in brackets", proxy, xff("[2001:db8::1]"), "2001:db8::1"},
		{"IPv6 with port", proxy, xff("[2001:db8::1]:443"), "2001:db8::1"},
		{"IPv6 with a bad port", proxy, xff("[2001:db8::1]x"), ""},
		{"IPv6 with a colon", proxy, xff("[2001:db8::1]:"), ""},
		{"IPv6 with zone", proxy, xff("fe80::1%eth0"), "fe80::1"},
		{"IPv6 with zone, brackets, port", proxy, xff("[fe80::1%25eth0]:80"), "fe80::1"},
		{"IPv6 with an empty zone", proxy, xff("fe80::1%"), ""},
		{"IPv4 with zone", proxy, xff("192.0.2.1%eth0"), ""},
		{"IPv4 in brackets", proxy, xff("[192.0.2.1]"), ""},
		{"mapped", proxy, xff("::ffff:192.0.2.1"), "192.0.2.1"},
		{"mapped proxy in the list", proxy, xff("192.0.2.1, ::ffff:10.0.0.1"), "192.0.2.1"},
		{"half a bracket", proxy, xff("[2001:db8::1"), ""},
		{"unknown", proxy, xff("unknown"), ""},
		{"unknown behind a proxy", proxy, xff("192.0.2.1, unknown, 10.0.0.9"), "10.0.0.9"},
		{"rubbish on the left", proxy, xff("<script>, 192.0.2.1"), "192.0.2.1"},
		{"leading zeros", proxy, xff("192.0.2.01"), ""},
		{"a number", proxy, xff("3221225985"), ""},
		{"three parts", proxy, xff("192.0.2"), ""},
		{"quoted", proxy, xff(`"192.0.2.1"`), ""},
		{"semicolon", proxy, xff("192.0.2.1; 192.0.2.2"), ""},
		{"very long entry", proxy, xff(strings.Repeat("1", 5000)), ""},
		{"very long zone", proxy, xff("fe80::1%" + strings.Repeat("z", 5000)), ""},
		{"10,000 entries", proxy, xff(long + "192.0.2.1, 10.0.0.1"), "192.0.2.1"},
		{"10,000 proxies", proxy, xff("192.0.2.1" + strings.Repeat(", 10.0.0.1", 10000)), "192.0.2.1"},
		{"Forwarded", proxy, []string{"Forwarded: for=192.0.2.2"}, ""},
		{"X-Real-IP", proxy, []string{"X-Real-IP: 192.0.2.3"}, ""},
		{"others beside it", proxy, []string{"Forwarded: for=192.0.2.2", "X-Forwarded-For: 192.0.2.1", "X-Real-IP: 192.0.2.3", "X-Client-IP: 192.0.2.4"}, "192.0.2.1"},
	}
}

// TestS8_ClientAddress: the gate and the accounts count the address that this finds (decision L8); without configured
// proxies no header counts.
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

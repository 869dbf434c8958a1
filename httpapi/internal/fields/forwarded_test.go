package fields

import (
	"net/netip"
	"strings"
	"testing"
)

// forwardedRow is the X-Forwarded-For of a request from the proxy 10.1.2.3, where 10.0.0.0/8 is trusted, and the client
// that counts.
type forwardedRow struct{ name, header, want string }

const forwardingProxy = "10.1.2.3"

func forwardedTable() []forwardedRow {
	return []forwardedRow{
		{"one address", "192.0.2.1", "192.0.2.1"},
		{"empty header", "", forwardingProxy},
		{"made up on the left", "192.0.2.99, 192.0.2.1", "192.0.2.1"},
		{"two proxies", "192.0.2.99, 192.0.2.1, 10.9.9.9", "192.0.2.1"},
		{"a proxy made up on the left", "10.0.0.1, 192.0.2.1, 10.9.9.9", "192.0.2.1"},
		{"only proxies: the leftmost", "10.0.0.1, 10.0.0.2", "10.0.0.1"},
		{"the same twice", "192.0.2.1, 192.0.2.1", "192.0.2.1"},
		{"two lines", "192.0.2.1\n10.9.9.9", "192.0.2.1"},
		{"no blanks", "192.0.2.99,192.0.2.1,10.0.0.1", "192.0.2.1"},
		{"tabs and blanks", "192.0.2.99 ,\t 192.0.2.1 \t, 10.0.0.1", "192.0.2.1"},
		{"empty entries", "192.0.2.99, 192.0.2.1,, ,", "192.0.2.1"},
		{"only commas", ",,,", forwardingProxy},
		{"port", "192.0.2.1:4711", "192.0.2.1"},
		{"port, then a proxy", "192.0.2.1:80, 10.0.0.1", "192.0.2.1"},
		{"port too large", "192.0.2.1:65536", forwardingProxy},
		{"port too long", "192.0.2.1:000080", forwardingProxy},
		{"colon without port", "192.0.2.1:", forwardingProxy},
		{"IPv6", "2001:db8::1", "2001:db8::1"},
		{"IPv6 in brackets", "[2001:db8::1]", "2001:db8::1"},
		{"IPv6 with port", "[2001:db8::1]:443", "2001:db8::1"},
		{"IPv6 with port, then a line of a proxy", "[2001:db8::1]:443\n10.9.9.9", "2001:db8::1"},
		{"IPv6 with a bad port", "[2001:db8::1]x", forwardingProxy},
		{"IPv6 with a colon", "[2001:db8::1]:", forwardingProxy},
		{"IPv6 with half a bracket", "[2001:db8::1", forwardingProxy},
		{"IPv6 with zone", "fe80::1%eth0", "fe80::1"},
		{"IPv6 with zone, then commas", "fe80::1%eth0,,", "fe80::1"},
		{"IPv6 with zone, brackets, port", "[fe80::1%25eth0]:80", "fe80::1"},
		{"IPv6 with an empty zone", "fe80::1%", forwardingProxy},
		{"IPv4 with zone", "192.0.2.1%eth0", forwardingProxy},
		{"IPv4 in brackets", "[192.0.2.1]", forwardingProxy},
		{"mapped", "::ffff:192.0.2.1", "192.0.2.1"},
		{"mapped proxy in the list", "192.0.2.1, ::ffff:10.0.0.1", "192.0.2.1"},
		{"unknown before a proxy: the proxy that wrote it", "192.0.2.1, unknown, 10.0.0.9", "10.0.0.9"},
		{"rubbish on the left", "<script>, 192.0.2.1", "192.0.2.1"},
		{"leading zeros", "192.0.2.01", forwardingProxy},
		{"a number", "3221225985", forwardingProxy},
		{"three parts", "192.0.2", forwardingProxy},
		{"quoted", `"192.0.2.1"`, forwardingProxy},
		{"semicolon", "192.0.2.1; 192.0.2.2", forwardingProxy},
		{"very long entry", strings.Repeat("1", 5000), forwardingProxy},
		{"very long zone", "fe80::1%" + strings.Repeat("z", 5000), forwardingProxy},
	}
}

// TestL8_ForwardedFor: the address from the right that is not a trusted proxy is the client (decision L8).
func TestL8_ForwardedFor(t *testing.T) {
	trusted := TrustedProxies{netip.MustParsePrefix("10.0.0.0/8")}
	for _, row := range forwardedTable() {
		var lines [][]byte
		for line := range strings.SplitSeq(row.header, "\n") {
			lines = append(lines, []byte(line))
		}
		if got := trusted.ClientAddress(netip.MustParseAddr(forwardingProxy), lines).String(); got != row.want {
			t.Errorf("%s: %.80q counts %s, want %s", row.name, row.header, got, row.want)
		}
	}
}

// FuzzForwardedFor holds the walk against a slow reading of the same rules.
func FuzzForwardedFor(f *testing.F) {
	for _, row := range forwardedTable() {
		f.Add(row.header)
	}
	trusted := TrustedProxies{netip.MustParsePrefix("10.0.0.0/8")}
	peer := netip.MustParseAddr(forwardingProxy)
	f.Fuzz(func(t *testing.T, text string) {
		var lines [][]byte
		var entries []string
		for _, line := range strings.Split(text, "\n") {
			lines = append(lines, []byte(line))
			entries = append(entries, strings.Split(line, ",")...)
		}
		want := peer
		for i := len(entries) - 1; i >= 0; i-- {
			entry := strings.Trim(entries[i], " \t")
			if entry == "" {
				continue
			}
			addr, ok := oracleAddress(entry)
			if !ok {
				break
			}
			if want = addr; !trusted.Contains(addr) {
				break
			}
		}
		if got := trusted.ClientAddress(peer, lines); got != want {
			t.Fatalf("%q: %s, want %s", text, got, want)
		}
	})
}

// oracleAddress reads an entry with the standard library.
func oracleAddress(entry string) (netip.Addr, bool) {
	if len(entry) > addressBytesMax {
		return netip.Addr{}, false
	}
	bracketed := strings.HasPrefix(entry, "[") && strings.HasSuffix(entry, "]")
	if bracketed {
		entry += ":0"
	}
	if port, err := netip.ParseAddrPort(entry); err == nil {
		digits := len(entry) - 1 - strings.LastIndexByte(entry, ':')
		return port.Addr().WithZone("").Unmap(), digits <= len("65535")
	}
	addr, err := netip.ParseAddr(entry)
	return addr.WithZone("").Unmap(), err == nil && !bracketed
}

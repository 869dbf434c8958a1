package fields

import (
	"net/netip"
	"strings"
	"testing"
)

// FuzzForwardedFor holds the walk against a slow reading of the same rules.
func FuzzForwardedFor(f *testing.F) {
	for _, seed := range []string{
		"192.0.2.1", "192.0.2.1:80, 10.0.0.1", "[2001:db8::1]:443\n10.9.9.9", "fe80::1%eth0,,", "::ffff:192.0.2.1", "[192.0.2.1]", "unknown, 10.0.0.9",
		"192.0.2.01", "fe80::1%", "[2001:db8::1", "192.0.2.1:000080", "", "192.0.2.99, 192.0.2.1, 10.9.9.9", "10.0.0.1, 192.0.2.1, 10.9.9.9", "10.0.0.1, 10.0.0.2",
		"192.0.2.99 ,\t 192.0.2.1 \t, 10.0.0.1", "192.0.2.99, 192.0.2.1,, ,", ",,,", "192.0.2.1:65536", "192.0.2.1:", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]x",
		"[2001:db8::1]:", "[fe80::1%25eth0]:80", "192.0.2.1%eth0", "192.0.2.1, ::ffff:10.0.0.1", "<script>, 192.0.2.1", "3221225985", "192.0.2", `"192.0.2.1"`,
		"192.0.2.1; 192.0.2.2", strings.Repeat("1", 5000), "fe80::1%" + strings.Repeat("z", 5000),
	} {
		f.Add(seed)
	}
	trusted := TrustedProxies{netip.MustParsePrefix("10.0.0.0/8")}
	peer := netip.MustParseAddr("10.1.2.3")
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

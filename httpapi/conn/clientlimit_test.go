package conn

import (
	"net/netip"
	"testing"
)

// TestO5_OneClient: how many of 200 connections from each of some addresses stay open.
func TestO5_OneClient(t *testing.T) {
	proxy := func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.2") }
	for name, c := range map[string]struct {
		limit, maxConns int
		exempt          func(netip.Addr) bool
		sources         []string
		kept            int
	}{
		"IPv4, two addresses":           {128, 16384, nil, []string{"127.0.0.2", "127.0.0.3"}, 2 * 128},
		"IPv4, a fifth of 200":          {128, 200, nil, []string{"127.0.0.2"}, 40},
		"IPv6, two addresses of a /64":  {128, 16384, nil, []string{"2001:db8:1::1", "2001:db8:1::2"}, 128},
		"IPv6, zones of one address":    {128, 16384, nil, []string{"fe80::1%a", "fe80::1%b"}, 128},
		"IPv6, two networks":            {128, 16384, nil, []string{"2001:db8:1::1", "2001:db8:2::1"}, 2 * 128},
		"a trusted proxy":               {128, 16384, proxy, []string{"127.0.0.2", "127.0.0.3"}, 200 + 128},
		"no limit":                      {0, 16384, nil, []string{"127.0.0.2", "127.0.0.3"}, 400},
		"no limit, as for a bare field": {-1, 16384, nil, []string{"127.0.0.2"}, 200},
	} {
		l, kept := newClientLimit(c.limit, c.maxConns, c.exempt), 0
		for range 2 { // as many again when all have left
			var open []netip.Addr
			for _, source := range c.sources {
				for range 200 {
					if key := l.keyOf(netip.MustParseAddr(source)); l.acquire(key) {
						open = append(open, key)
					}
				}
			}
			kept = len(open)
			for _, key := range open {
				l.release(key)
			}
		}
		if kept != c.kept || len(l.open) > 0 {
			t.Errorf("%s: %d connections stay open, want %d; %d clients are still counted", name, kept, c.kept, len(l.open))
		}
	}
}

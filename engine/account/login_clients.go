package account

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Brakes on clients that log in (K2).
const (
	clientCodesHourMax = 30 // code requests of one client
	clientTriesHourMax = 60 // codes tried by one client
	clientsMax         = 1 << 16
	clientsKept        = clientsMax * 3 / 4 // when the table is full
)

// loginClient counts what one client has asked of the way to a session.
type loginClient struct{ codes, tries HourCounter }

func (c *loginClient) newest() int64 { return max(c.codes.Newest, c.tries.Newest) }

// loginClients is a table of bounded size, in memory only.
type loginClients map[netip.Prefix]*loginClient

// ClientPrefix is what stands for a client in counters: an IPv4 address, or the /64 of an IPv6 one (L8).
func ClientPrefix(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	prefix, _ := addr.Prefix(bits)
	return prefix
}

// LoggedNetwork is an address as logs may show it: cut to 24 bits, or 48 of an IPv6 one; "unknown" for the zero address.
func LoggedNetwork(addr netip.Addr) string {
	bits := 48
	if addr.Is4() {
		bits = 24
	}
	network, err := addr.Prefix(bits)
	if err != nil || !addr.IsValid() {
		return "unknown"
	}
	return network.String()
}

func (t loginClients) get(addr netip.Addr) *loginClient {
	prefix := ClientPrefix(addr)
	c := t[prefix]
	if c == nil {
		t.evict()
		c = &loginClient{}
		t[prefix] = c
	}
	return c
}

// evict drops a quarter of a full table, those that were quiet longest: one by one each new client would pay for a search.
func (t loginClients) evict() {
	if len(t) < clientsMax {
		return
	}
	type quiet struct {
		prefix netip.Prefix
		newest int64
	}
	all := make([]quiet, 0, len(t))
	for prefix, c := range t {
		all = append(all, quiet{prefix, c.newest()})
	}
	slices.SortFunc(all, func(a, b quiet) int {
		return cmp.Or(cmp.Compare(a.newest, b.newest), a.prefix.Addr().Compare(b.prefix.Addr()))
	})
	for _, c := range all[:len(all)-clientsKept] {
		delete(t, c.prefix)
	}
}

// errTooManyAttempts refuses a client, whatever address it asks about.
func errTooManyAttempts(wait time.Duration) error {
	return &engine.Error{Code: engine.CodeRateLimited, Message: "too many attempts; try again later", RetryAfter: wait}
}

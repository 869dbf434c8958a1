package account

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Limits on the logins of one client address.
const (
	clientCodesHourMax = 30 // requests for a login code
	clientTriesHourMax = 60 // login attempts
	clientsMax         = 1 << 16
	clientsKept        = clientsMax * 3 / 4 // number of clients that evict keeps
)

// loginClient counts the login requests of one client address.
type loginClient struct{ codes, tries HourCounter }

func (c *loginClient) newest() int64 { return max(c.codes.Newest, c.tries.Newest) }

// loginClients is a table of at most clientsMax clients, in memory only.
type loginClients map[netip.Prefix]*loginClient

// ClientPrefix returns the prefix by which clients are counted: the /32 of an IPv4 address, or the /64 of an IPv6
// address.
func ClientPrefix(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	prefix, _ := addr.Prefix(bits)
	return prefix
}

// LoggedNetwork returns the network of an address for logs: the /24 of an IPv4 address, the /48 of an IPv6 address, or
// "unknown" for the zero address.
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

// evict removes the least recently used quarter of a full table. It would be slow to search the table for each new
// client.
func (t loginClients) evict() {
	if len(t) < clientsMax {
		return
	}
	type use struct {
		prefix netip.Prefix
		newest int64
	}
	uses := make([]use, 0, len(t))
	for prefix, c := range t {
		uses = append(uses, use{prefix, c.newest()})
	}
	slices.SortFunc(uses, func(a, b use) int {
		return cmp.Or(cmp.Compare(a.newest, b.newest), a.prefix.Addr().Compare(b.prefix.Addr()))
	})
	for _, c := range uses[:len(uses)-clientsKept] {
		delete(t, c.prefix)
	}
}

// errTooManyAttempts does not depend on the e-mail address, so that it does not reveal whether the address is known.
func errTooManyAttempts(wait time.Duration) error {
	return &engine.Error{Code: engine.CodeRateLimited, Message: "too many attempts; try again later", RetryAfter: wait}
}

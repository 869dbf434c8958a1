package account

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Limits of one client address on logins.
const (
	clientCodesHourMax = 30 // code requests
	clientTriesHourMax = 60 // tries of codes
	clientsMax         = 1 << 16
	clientsKept        = clientsMax * 3 / 4 // when the table is full
)

// loginClient counts the login requests of one client address.
type loginClient struct{ codes, tries HourCounter }

func (c *loginClient) newest() int64 { return max(c.codes.Newest, c.tries.Newest) }

// loginClients is a table of bounded size, in memory only.
type loginClients map[netip.Prefix]*loginClient

// ClientPrefix returns what identifies a client in counters: an IPv4 address, or the /64 of an IPv6 address.
func ClientPrefix(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	prefix, _ := addr.Prefix(bits)
	return prefix
}

// LoggedNetwork returns an address as logs may show it: its /24, or /48 for IPv6; "unknown" for the zero address.
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

// evict removes the quarter of a full table that was not used for the longest time. To remove one at a time would cost
// each new client a search.
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

// errTooManyAttempts does not depend on the e-mail address.
func errTooManyAttempts(wait time.Duration) error {
	return &engine.Error{Code: engine.CodeRateLimited, Message: "too many attempts; try again later", RetryAfter: wait}
}

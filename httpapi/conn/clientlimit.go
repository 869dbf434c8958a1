package conn

import (
	"net/netip"
	"sync"
)

const (
	// clientFractionMax: one client may have at most 1/clientFractionMax of Config.MaxConns.
	clientFractionMax = 5
	// clientIPv6Bits is the prefix length of an IPv6 client. Providers assign a /64 to a household, whose devices
	// choose the other 64 bits freely.
	clientIPv6Bits = 64
)

// clientLimit limits the open connections of each client.
type clientLimit struct {
	limit  int                   // 0: no limit
	exempt func(netip.Addr) bool // reports whether an address has no limit; may be nil

	mu   sync.Mutex
	open map[netip.Addr]int // number of open connections by keyOf
}

// newClientLimit lowers limit to at most maxConns/clientFractionMax. 0 or less means no limit.
func newClientLimit(limit, maxConns int, exempt func(netip.Addr) bool) *clientLimit {
	limit = max(0, min(limit, max(1, maxConns/clientFractionMax)))
	return &clientLimit{limit: limit, exempt: exempt, open: map[netip.Addr]int{}}
}

// keyOf returns a client's key in open: the IPv4 address or IPv6 prefix, or the zero address if there is no limit.
func (s *clientLimit) keyOf(addr netip.Addr) netip.Addr {
	if s.limit == 0 || !addr.IsValid() || s.exempt != nil && s.exempt(addr) {
		return netip.Addr{}
	}
	if addr.Is6() {
		return netip.PrefixFrom(addr.WithZone(""), clientIPv6Bits).Masked().Addr()
	}
	return addr
}

// acquire counts a new connection of client (a result of keyOf). At the limit it returns false instead.
func (s *clientLimit) acquire(client netip.Addr) bool {
	if !client.IsValid() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[client] >= s.limit {
		return false
	}
	s.open[client]++
	return true
}

// release undoes a successful acquire.
func (s *clientLimit) release(client netip.Addr) {
	if !client.IsValid() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[client]--; s.open[client] == 0 {
		delete(s.open, client)
	}
}

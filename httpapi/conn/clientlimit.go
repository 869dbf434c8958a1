package conn

import (
	"net/netip"
	"sync"
)

const (
	// clientShareOfCap: one client may have at most 1/clientShareOfCap of the connections in Config.MaxConns.
	clientShareOfCap = 5
	// clientIPv6Bits: an IPv6 client is a /64. Providers assign one to a household, whose devices choose the other bits
	// themselves.
	clientIPv6Bits = 64
)

// clientLimit limits the open connections of each client.
type clientLimit struct {
	limit  int                   // 0: any number
	exempt func(netip.Addr) bool // reports whether an address has no limit; may be nil

	mu   sync.Mutex
	open map[netip.Addr]int // number of open connections by keyOf
}

// newClientLimit lowers limit to maxConns/clientShareOfCap if it is higher. A limit of 0 or less means no limit.
func newClientLimit(limit, maxConns int, exempt func(netip.Addr) bool) *clientLimit {
	limit = max(0, min(limit, max(1, maxConns/clientShareOfCap)))
	return &clientLimit{limit: limit, exempt: exempt, open: map[netip.Addr]int{}}
}

// keyOf returns the key under which the connections of an address are counted: the address or its IPv6 prefix. It
// returns the zero address if the connections are not limited.
func (s *clientLimit) keyOf(addr netip.Addr) netip.Addr {
	if s.limit == 0 || !addr.IsValid() || s.exempt != nil && s.exempt(addr) {
		return netip.Addr{}
	}
	if addr.Is6() {
		return netip.PrefixFrom(addr.WithZone(""), clientIPv6Bits).Masked().Addr()
	}
	return addr
}

// acquire counts a new connection. client is a result of keyOf. It returns false if the client is at the limit.
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

// release undoes an acquire that returned true.
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

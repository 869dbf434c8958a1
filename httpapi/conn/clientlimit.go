package conn

import (
	"net/netip"
	"sync"
)

const (
	// clientShareOfCap: one client may have at most 1/clientShareOfCap of the cap (goal O5).
	clientShareOfCap = 5
	// clientPrefixBitsIPv6 is the prefix length that identifies an IPv6 client: providers assign a /64 to a household,
	// which chooses the other bits itself.
	clientPrefixBitsIPv6 = 64
)

// clientLimit counts the open connections of each client address: an IPv4 address, or the first 64 bits of an IPv6
// one. The zero value counts nothing.
type clientLimit struct {
	limit  int // 0 = any number
	exempt func(netip.Addr) bool

	mu   sync.Mutex
	open map[netip.Addr]int
}

// newClientLimit returns a clientLimit of limit connections for each client, at most its share of maxConns.
func newClientLimit(limit, maxConns int, exempt func(netip.Addr) bool) *clientLimit {
	if limit > 0 {
		limit = max(1, min(limit, maxConns/clientShareOfCap))
	}
	return &clientLimit{limit: limit, exempt: exempt, open: map[netip.Addr]int{}}
}

// keyOf returns the key under which an address is counted, the zero address if it is not counted.
func (s *clientLimit) keyOf(addr netip.Addr) netip.Addr {
	if s.limit <= 0 || !addr.IsValid() || s.exempt != nil && s.exempt(addr) {
		return netip.Addr{}
	}
	if addr.Is6() {
		return netip.PrefixFrom(addr.WithZone(""), clientPrefixBitsIPv6).Masked().Addr()
	}
	return addr
}

// acquire counts a connection, and returns false if its client has reached the limit.
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

// release uncounts a connection.
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

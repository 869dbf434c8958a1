package conn

import (
	"net/netip"
	"sync"
)

const (
	// clientShareOfCap of the cap is the most that one address gets: a fifth (goal O5).
	clientShareOfCap = 5
	// clientPrefixBitsIPv6 of an IPv6 address are one client: a household gets that much, and chooses the rest itself.
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

// newClientLimit holds each address to a number, and to its share of a cap.
func newClientLimit(most, conns int, exempt func(netip.Addr) bool) *clientLimit {
	if most > 0 {
		most = max(1, min(most, conns/clientShareOfCap))
	}
	return &clientLimit{limit: most, exempt: exempt, open: map[netip.Addr]int{}}
}

// clientKey is what an address is counted as; the zero address is not counted.
func (s *clientLimit) keyOf(addr netip.Addr) netip.Addr {
	if s.limit <= 0 || !addr.IsValid() || s.exempt != nil && s.exempt(addr) {
		return netip.Addr{}
	}
	if addr.Is6() {
		return netip.PrefixFrom(addr.WithZone(""), clientPrefixBitsIPv6).Masked().Addr()
	}
	return addr
}

// add counts a connection, unless its address has all that it may.
func (s *clientLimit) acquire(sharer netip.Addr) bool {
	if !sharer.IsValid() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[sharer] >= s.limit {
		return false
	}
	s.open[sharer]++
	return true
}

// release ends a connection that was taken. An address without one is forgotten.
func (s *clientLimit) release(sharer netip.Addr) {
	if !sharer.IsValid() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[sharer]--; s.open[sharer] == 0 {
		delete(s.open, sharer)
	}
}

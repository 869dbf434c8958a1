package conn

import (
	"net/netip"
	"sync"
)

const (
	// addressShare of the cap is the most that one address gets: a fifth (goal O5).
	addressShare = 5
	// addressBits6 of an IPv6 address are one client: a household gets that much, and chooses the rest itself.
	addressBits6 = 64
)

// shares counts the open connections of each client address: an IPv4 address, or the first 64 bits of an IPv6 one. The zero value counts
// nothing.
type shares struct {
	most   int // 0 = any number
	exempt func(netip.Addr) bool

	mu   sync.Mutex
	open map[netip.Addr]int
}

// newShares holds each address to a number, and to its share of a cap.
func newShares(most, conns int, exempt func(netip.Addr) bool) *shares {
	if most > 0 {
		most = max(1, min(most, conns/addressShare))
	}
	return &shares{most: most, exempt: exempt, open: map[netip.Addr]int{}}
}

// sharer is what an address is counted as; the zero address is not counted.
func (s *shares) sharer(addr netip.Addr) netip.Addr {
	if s.most <= 0 || !addr.IsValid() || s.exempt != nil && s.exempt(addr) {
		return netip.Addr{}
	}
	if addr.Is6() {
		return netip.PrefixFrom(addr.WithZone(""), addressBits6).Masked().Addr()
	}
	return addr
}

// take counts a connection, unless its address has all that it may.
func (s *shares) take(sharer netip.Addr) bool {
	if !sharer.IsValid() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[sharer] >= s.most {
		return false
	}
	s.open[sharer]++
	return true
}

// give ends a connection that was taken. An address without one is forgotten.
func (s *shares) give(sharer netip.Addr) {
	if !sharer.IsValid() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[sharer]--; s.open[sharer] == 0 {
		delete(s.open, sharer)
	}
}

package conn

import (
	"context"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"sync/atomic"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

const (
	proxySearchSlots = 16
	// proxyRequestsMin is the number of requests with X-Forwarded-For that make an address look like a proxy. Some
	// clients send the header themselves.
	proxyRequestsMin = 50
)

// proxySearch looks for a proxy that the operator has not named: an address from which many requests carry
// X-Forwarded-For. All clients behind such a proxy count as one. It counts by address in a few slots, without locks or
// allocations. If addresses share a slot, the one with the most requests keeps it.
type proxySearch struct {
	slots [proxySearchSlots]atomic.Uint64 // 32 bits of the hash of an address, and 32 bits with its count
	found atomic.Pointer[netip.Addr]
}

// Found returns the proxy, or "" if there is none. If its address is public, it returns the network, because the
// address may be that of a client which made up the header.
func (s *proxySearch) Found() string {
	addr := s.found.Load()
	switch {
	case addr == nil:
		return ""
	case addr.IsPrivate(), addr.IsLoopback():
		return addr.String()
	}
	return fields.LoggedNetwork(*addr)
}

// note counts a request with X-Forwarded-For. It reports whether the search has just ended with this address.
func (s *proxySearch) note(seed maphash.Seed, addr netip.Addr) bool {
	bytes := addr.As16()
	hash := maphash.Bytes(seed, bytes[:])
	const countMask = 1<<32 - 1
	slot, own := &s.slots[hash%proxySearchSlots], hash&^countMask
	before := slot.Load()
	owner, count := before&^countMask, before&countMask
	switch {
	case count == 0:
		owner, count = own, 1
	case owner == own:
		count++
	default:
		count--
	}
	slot.CompareAndSwap(before, owner|count) // if another goroutine was faster, one request is not counted
	if owner != own || count < proxyRequestsMin {
		return false
	}
	found := addr // a copy, so that addr itself is not allocated
	return s.found.CompareAndSwap(nil, &found)
}

// noteForwarded is called for a request with X-Forwarded-For. If the peer looks like a proxy and is not trusted, it
// logs this once.
func (c *Conn) noteForwarded() {
	l := c.permit.listener
	if l == nil || !c.peer.IsValid() {
		return
	}
	search := &l.config.Counts.Proxies
	if search.found.Load() != nil || l.config.ExemptClients != nil && l.config.ExemptClients(c.peer) || !search.note(l.seed, c.peer) {
		return
	}
	l.config.Log.LogAttrs(context.Background(), slog.LevelWarn,
		"requests carry X-Forwarded-For, but their address is not a trusted proxy: all its clients share one quota; if it is your proxy, name it with --trusted-proxy",
		slog.String("proxy", search.Found()))
}

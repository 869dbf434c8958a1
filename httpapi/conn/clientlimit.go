package conn

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

const (
	// clientShareOfCap: one client may have at most 1/clientShareOfCap of the connections in Config.MaxConns.
	clientShareOfCap = 5
	// clientIPv6Bits: an IPv6 client is a /64. Providers assign one to a household, whose devices choose the other bits
	// themselves.
	clientIPv6Bits = 64
	// refusalLogInterval is the shortest time between two log lines about connections of clients at their limit.
	refusalLogInterval = time.Minute
)

// clientLimit limits the open connections of each client.
type clientLimit struct {
	limit  int                   // 0: any number
	exempt func(netip.Addr) bool // reports whether an address has no limit; may be nil

	mu         sync.Mutex
	open       map[netip.Addr]int // number of open connections by keyOf
	refused    int                // connections refused since the last report
	nextReport time.Time          // earliest time of the next report
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

// reportRefusal counts a connection that was closed because its client is at the limit. It returns the number of such
// connections since the last report, or 0 if that was less than refusalLogInterval ago.
func (s *clientLimit) reportRefusal(now time.Time) (refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
	if now.Before(s.nextReport) {
		return 0
	}
	refused = s.refused
	s.refused, s.nextReport = 0, now.Add(refusalLogInterval)
	return refused
}

// logRefusal logs, at most once in refusalLogInterval, that connections of clients at their limit are closed.
func (l *Listener) logRefusal(peer netip.Addr) {
	refused := l.clientLimit.reportRefusal(l.config.Clock())
	if refused == 0 {
		return
	}
	l.config.Log.LogAttrs(context.Background(), slog.LevelWarn,
		"connection closed: its client has as many as one may have (--connections-per-address, at most a fifth of --connections)",
		slog.String("network", fields.LoggedNetwork(peer)), slog.Int("limit", l.clientLimit.limit), slog.Int("refused", refused))
}

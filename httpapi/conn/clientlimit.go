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
	// clientShareOfCap: one client, or one IPv6 network, may have at most 1/clientShareOfCap of the connections in
	// Config.MaxConns.
	clientShareOfCap = 5
	// refusalLogInterval is the shortest time between two log lines about connections of clients at their limit.
	refusalLogInterval = time.Minute
)

// clientNetwork is a length of IPv6 prefixes with a limit: a multiple of the limit of one client.
type clientNetwork struct{ bits, clients int }

// clientNetworks returns the IPv6 prefixes whose connections are limited. Providers assign a /64 to a household, whose
// devices choose the other bits themselves. Many assign a /56 or a /48, whose holder has 256 or 65,536 /64s.
func clientNetworks() [3]clientNetwork { return [...]clientNetwork{{64, 1}, {56, 4}, {48, 16}} }

// clientLimit limits the open connections of each client. The zero value has no limit.
type clientLimit struct {
	limit, most int                   // limit = 0: any number; most is the share of the cap
	exempt      func(netip.Addr) bool // reports whether an address has no limit; may be nil

	mu         sync.Mutex
	open       map[netip.Prefix]int // number of open connections by client and by network, see networksOf
	refused    int                  // connections refused since the last report
	nextReport time.Time            // earliest time of the next report
}

// newClientLimit lowers limit to maxConns/clientShareOfCap if it is higher. A limit of 0 or less means no limit.
func newClientLimit(limit, maxConns int, exempt func(netip.Addr) bool) *clientLimit {
	most := max(1, maxConns/clientShareOfCap)
	return &clientLimit{limit: max(0, min(limit, most)), most: most, exempt: exempt, open: map[netip.Prefix]int{}}
}

// keyOf returns the key under which the connections of an address are counted: the address or its IPv6 prefix. It
// returns the zero address if the connections are not limited.
func (s *clientLimit) keyOf(addr netip.Addr) netip.Addr {
	if s.limit <= 0 || !addr.IsValid() || s.exempt != nil && s.exempt(addr) {
		return netip.Addr{}
	}
	if addr.Is6() {
		return prefixOf(addr.WithZone(""), clientNetworks()[0].bits).Addr()
	}
	return addr
}

// networksOf calls visit with the client and the networks that it belongs to, and with the limit of each, until visit
// returns false.
func (s *clientLimit) networksOf(client netip.Addr, visit func(network netip.Prefix, limit int) bool) {
	if client.Is4() {
		visit(prefixOf(client, client.BitLen()), s.limit)
		return
	}
	for _, n := range clientNetworks() {
		if !visit(prefixOf(client, n.bits), min(s.limit*n.clients, s.most)) {
			return
		}
	}
}

func prefixOf(addr netip.Addr, bits int) netip.Prefix { return netip.PrefixFrom(addr, bits).Masked() }

// acquire counts a new connection. client is a result of keyOf. It returns false if the client or its network is at the
// limit.
func (s *clientLimit) acquire(client netip.Addr) bool {
	if !client.IsValid() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	room := true
	s.networksOf(client, func(network netip.Prefix, limit int) bool {
		room = s.open[network] < limit
		return room
	})
	if room {
		s.add(client, 1)
	}
	return room
}

// release undoes an acquire that returned true.
func (s *clientLimit) release(client netip.Addr) {
	if !client.IsValid() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(client, -1)
}

func (s *clientLimit) add(client netip.Addr, delta int) {
	s.networksOf(client, func(network netip.Prefix, _ int) bool {
		if s.open[network] += delta; s.open[network] == 0 {
			delete(s.open, network)
		}
		return true
	})
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
		"connection closed: its client or IPv6 network has as many as one may have (--connections-per-address, at most a fifth of --connections)",
		slog.String("network", fields.LoggedNetwork(peer)), slog.Int("limit", l.clientLimit.limit), slog.Int("refused", refused))
}

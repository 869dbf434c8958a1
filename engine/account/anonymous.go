package account

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/tasard/tasard/engine"
)

const (
	rowsPerSet = 8
	// AnonymousRowsDefault is the default number of addresses in a table.
	AnonymousRowsDefault = 1 << 16
)

// AnonymousTable counts requests without an API key by client address, in memory only. An IPv6 request also counts for
// its /56 and /48, which have larger quotas. The table has a fixed size. It is divided into sets of rows, and an
// address's hash selects its set. A new address replaces the least recently used row of its set.
type AnonymousTable struct {
	rows []anonymousClient
	hash func(key uint64) uint64
}

type anonymousClient struct {
	key    uint64        // an IPv4 address, or the upper half of an IPv6 prefix
	bits   int           // length of the prefix, 32 for an IPv4 address; 0: the row is not used
	last   time.Duration // monotonic time (ClockReading.Monotonic) of the newest request
	day    DayCounter
	minute minuteWindow
}

// NewAnonymousTable returns a table with at least this many rows. hash must have a random seed, so that clients can't
// choose addresses for one set.
func NewAnonymousTable(rows int, hash func(uint64) uint64) *AnonymousTable {
	sets := max(1, (rows+rowsPerSet-1)/rowsPerSet)
	return &AnonymousTable{rows: make([]anonymousClient, sets*rowsPerSet), hash: hash}
}

// Admit admits and charges one request of an address, or denies it.
func (t *AnonymousTable) Admit(addr netip.Addr, now ClockReading, quota Quota) QuotaResult {
	var result QuotaResult
	var rows [len(ipv6Networks)]*anonymousClient
	for i, n := range clientNetworks(addr) {
		if n.clients == 0 {
			continue
		}
		rows[i] = t.row(addr, n.bits)
		rows[i].last = now.Monotonic
		of := rows[i].quotaResult(now, Quota{n.clients * quota.Day, n.clients * quota.Minute})
		if i == 0 {
			result = of
		} else if !of.Admitted {
			result.denyBy(&of)
		}
		if !result.Admitted {
			return result
		}
	}
	for _, row := range rows {
		if row != nil {
			row.day.add(now.today())
			row.minute.add(now)
		}
	}
	result.charge()
	return result
}

// denyBy denies a request that exceeds the quota of the client's network. The exceeded window of the client then has no
// requests remaining until the network's reset.
func (r *QuotaResult) denyBy(network *QuotaResult) {
	r.Admitted, r.DenyCode, r.RetryAfter = false, network.DenyCode, network.RetryAfter
	window, of := &r.Minute, &network.Minute
	if r.DenyCode == engine.CodeQuotaExceeded {
		window, of = &r.Day, &network.Day
	}
	window.Remaining, window.Reset = 0, of.Reset
}

// row returns the row of a prefix of an address. It creates the row if there is none.
func (t *AnonymousTable) row(addr netip.Addr, bits int) *anonymousClient {
	row, free := t.find(addr, bits)
	if row == nil {
		row = free
		*row = anonymousClient{key: prefixKey(addr, bits), bits: bits, minute: minuteWindow{admitted: row.minute.admitted[:0]}}
	}
	return row
}

// Usage returns both quota windows (day and minute) of an address without charging a request. Admitted tells whether
// one more request would be admitted.
func (t *AnonymousTable) Usage(addr netip.Addr, now ClockReading, quota Quota) QuotaResult {
	row, _ := t.find(addr, clientNetworks(addr)[0].bits)
	if row == nil {
		row = &anonymousClient{}
	}
	return row.quotaResult(now, quota)
}

// Refund takes back one request of an address. admittedAt is the clock reading of its admission.
func (t *AnonymousTable) Refund(addr netip.Addr, admittedAt ClockReading) {
	for _, n := range clientNetworks(addr) {
		row, _ := t.find(addr, n.bits)
		if row == nil {
			continue
		}
		row.minute.refund(admittedAt)
		if row.day.Day == admittedAt.today() && row.day.Count > 0 {
			row.day.Count--
		}
	}
}

func (c *anonymousClient) quotaResult(now ClockReading, quota Quota) QuotaResult {
	c.minute.expire(now)
	today := max(now.today(), c.day.Day)
	day := Window{quota.Day, max(0, quota.Day-c.day.on(today)), endOf(today)}
	return quotaResultOf(day, c.minute.window(quota.Minute, now), now.Wall)
}

// find returns the row of an address's prefix, or else a row to replace.
func (t *AnonymousTable) find(addr netip.Addr, bits int) (row, free *anonymousClient) {
	key := prefixKey(addr, bits)
	sets := uint64(len(t.rows) / rowsPerSet)
	set := t.rows[t.hash(key)%sets*rowsPerSet:][:rowsPerSet]
	free = &set[0]
	for i := range set {
		row := &set[i]
		if row.key == key && row.bits == bits {
			return row, nil
		}
		if free.bits != 0 && (row.bits == 0 || row.last < free.last) {
			free = row
		}
	}
	return nil, free
}

// prefixKey returns an IPv4 address, or the upper half of an IPv6 prefix.
func prefixKey(addr netip.Addr, bits int) uint64 {
	addr = addr.Unmap()
	if addr.Is4() {
		ipv4 := addr.As4()
		return uint64(binary.BigEndian.Uint32(ipv4[:]))
	}
	ipv6 := addr.As16()
	return binary.BigEndian.Uint64(ipv6[:8]) &^ (1<<(64-bits) - 1)
}

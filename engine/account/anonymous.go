package account

import (
	"encoding/binary"
	"net/netip"
	"time"
)

const (
	rowsPerSet = 8
	// AnonymousRowsDefault is the default number of addresses in a table.
	AnonymousRowsDefault = 1 << 16
)

// AnonymousTable counts requests without an API key by client address, in memory only. Its size is fixed. The rows are
// divided into sets, and the hash of an address chooses its set. A new address replaces the least recently used row of
// its set.
type AnonymousTable struct {
	rows []anonymousClient
	hash func(key uint64) uint64
}

type anonymousClient struct {
	key    uint64 // an IPv4 address, or the upper half of an IPv6 address
	v4     bool
	used   bool
	last   time.Duration // monotonic time (ClockReading.Monotonic) of the newest request
	day    DayCounter
	minute minuteWindow
}

// NewAnonymousTable returns a table with at least this many rows. hash must have a random seed, so that clients can't
// choose addresses that share a set.
func NewAnonymousTable(rows int, hash func(uint64) uint64) *AnonymousTable {
	sets := max(1, (rows+rowsPerSet-1)/rowsPerSet)
	return &AnonymousTable{rows: make([]anonymousClient, sets*rowsPerSet), hash: hash}
}

// Admit admits and charges one request of an address, or denies it.
func (t *AnonymousTable) Admit(addr netip.Addr, now ClockReading, quota Quota) QuotaResult {
	row, free := t.find(addr)
	if row == nil {
		row = free
		key, v4 := addressKey(addr)
		*row = anonymousClient{key: key, v4: v4, used: true, minute: minuteWindow{admitted: row.minute.admitted[:0]}}
	}
	row.last = now.Monotonic
	result := row.quotaResult(now, quota)
	if result.Admitted {
		row.day.add(now.today())
		row.minute.add(now)
		result.charge()
	}
	return result
}

// Usage returns both quota windows (day and minute) of an address without charging a request. Admitted says whether one
// more request would be admitted.
func (t *AnonymousTable) Usage(addr netip.Addr, now ClockReading, quota Quota) QuotaResult {
	row, _ := t.find(addr)
	if row == nil {
		row = &anonymousClient{}
	}
	return row.quotaResult(now, quota)
}

// Refund takes back one request of an address. admittedAt is the clock reading with which the request was admitted.
func (t *AnonymousTable) Refund(addr netip.Addr, admittedAt ClockReading) {
	row, _ := t.find(addr)
	if row == nil {
		return
	}
	row.minute.refund(admittedAt)
	if row.day.Day == admittedAt.today() && row.day.Count > 0 {
		row.day.Count--
	}
}

func (c *anonymousClient) quotaResult(now ClockReading, quota Quota) QuotaResult {
	c.minute.expire(now)
	today := max(now.today(), c.day.Day)
	day := Window{quota.Day, max(0, quota.Day-c.day.on(today)), (today + 1).Start()}
	return quotaResultOf(day, c.minute.window(quota.Minute, now), now.Wall)
}

// find returns the row of an address, or else the row that the address may replace.
func (t *AnonymousTable) find(addr netip.Addr) (row, free *anonymousClient) {
	key, v4 := addressKey(addr)
	sets := uint64(len(t.rows) / rowsPerSet)
	set := t.rows[t.hash(key)%sets*rowsPerSet:][:rowsPerSet]
	free = &set[0]
	for i := range set {
		row := &set[i]
		if row.used && row.key == key && row.v4 == v4 {
			return row, nil
		}
		if free.used && (!row.used || row.last < free.last) {
			free = row
		}
	}
	return nil, free
}

func addressKey(addr netip.Addr) (key uint64, v4 bool) {
	addr = addr.Unmap()
	if addr.Is4() {
		ipv4 := addr.As4()
		return uint64(binary.BigEndian.Uint32(ipv4[:])), true
	}
	ipv6 := addr.As16()
	return binary.BigEndian.Uint64(ipv6[:8]), false
}

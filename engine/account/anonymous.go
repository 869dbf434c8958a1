package account

import (
	"encoding/binary"
	"net/netip"
	"time"
)

const (
	rowsPerSet = 8
	// AnonymousRowsDefault is how many addresses a table remembers.
	AnonymousRowsDefault = 1 << 16
)

// AnonymousTable counts requests without a key by client address, in memory only. Its size is fixed: an address may
// have any row of one set, and a new address takes the row of the set that was not used for the longest time.
type AnonymousTable struct {
	rows []anonymousClient
	hash func(key uint64) uint64
}

type anonymousClient struct {
	key    uint64 // an IPv4 address, or the upper half of an IPv6 address
	v4     bool
	used   bool
	last   time.Duration // steady
	day    DayCounter
	minute minuteWindow
}

// NewAnonymousTable returns a table for about so many addresses. hash must be seeded randomly, so that clients can't
// choose addresses of one set.
func NewAnonymousTable(rows int, hash func(uint64) uint64) *AnonymousTable {
	sets := max(1, (rows+rowsPerSet-1)/rowsPerSet)
	return &AnonymousTable{rows: make([]anonymousClient, sets*rowsPerSet), hash: hash}
}

// Admit admits and charges one request of an address, or refuses it.
func (t *AnonymousTable) Admit(from netip.Addr, now ClockReading, quota Quota) QuotaResult {
	row, free := t.find(from)
	if row == nil {
		row = free
		key, v4 := addressKey(from)
		*row = anonymousClient{key: key, v4: v4, used: true, minute: minuteWindow{admitted: row.minute.admitted[:0]}}
	}
	row.last = now.Steady
	result := row.quotaResult(now, quota)
	if result.Admitted {
		row.day.add(now.today())
		row.minute.add(now)
		result.charge()
	}
	return result
}

// Usage returns both windows of an address without charging a request; Admitted says whether one more fits.
func (t *AnonymousTable) Usage(from netip.Addr, now ClockReading, quota Quota) QuotaResult {
	row, _ := t.find(from)
	if row == nil {
		row = &anonymousClient{}
	}
	return row.quotaResult(now, quota)
}

// Refund takes back an admission of an address; at is the time of the admission.
func (t *AnonymousTable) Refund(from netip.Addr, at ClockReading) {
	row, _ := t.find(from)
	if row == nil {
		return
	}
	row.minute.refund(at)
	if row.day.Day == at.today() && row.day.Count > 0 {
		row.day.Count--
	}
}

func (c *anonymousClient) quotaResult(now ClockReading, quota Quota) QuotaResult {
	c.minute.expire(now)
	today := max(now.today(), c.day.Day)
	day := Window{quota.Day, max(0, quota.Day-c.day.on(today)), (today + 1).Start()}
	return quotaResultOf(day, c.minute.window(quota.Minute, now), now.Wall)
}

// find returns the row of an address, or the one that it may take.
func (t *AnonymousTable) find(from netip.Addr) (row, free *anonymousClient) {
	key, v4 := addressKey(from)
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
		four := addr.As4()
		return uint64(binary.BigEndian.Uint32(four[:])), true
	}
	sixteen := addr.As16()
	return binary.BigEndian.Uint64(sixteen[:8]), false
}

package account

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// Shape of the table of strangers.
const (
	rowsPerSet = 8 // rows that an address may stand in
	// AnonymousRowsDefault is how many addresses a table remembers.
	AnonymousRowsDefault = 1 << 16
)

// AnonymousTable counts callers without a key by client address (L8), in a table of fixed size and in memory only: a restart forgets
// them, and when more addresses call than it has rows, the one of eight that was quiet longest gives its row away.
type AnonymousTable struct {
	rows []anonymousClient
	hash func(key uint64) uint64
}

type anonymousClient struct {
	key    uint64 // the upper half of an IPv6 address, or an IPv4 address
	v4     bool
	used   bool
	last   time.Duration
	day    DayCounter
	minute minuteWindow
}

// NewAnonymousTable has room for about so many addresses. hash spreads keys over the rows and should be seeded by chance, so that
// nobody can choose addresses that crowd each other out.
func NewAnonymousTable(rows int, hash func(uint64) uint64) *AnonymousTable {
	sets := max(1, (rows+rowsPerSet-1)/rowsPerSet)
	return &AnonymousTable{rows: make([]anonymousClient, sets*rowsPerSet), hash: hash}
}

// Admit asks for one request of an address now, and charges it.
func (s *AnonymousTable) Admit(from netip.Addr, now ClockReading, allowance Quota) QuotaResult {
	row, quietest := s.find(from)
	if row == nil {
		row = quietest
		key, v4 := addressKey(from)
		*row = anonymousClient{key: key, v4: v4, used: true, minute: minuteWindow{admitted: row.minute.admitted[:0]}}
	}
	row.last = now.Steady
	verdict := row.quotaResult(now, allowance)
	if verdict.Admitted {
		row.day.add(now.today())
		row.minute.add(now)
		verdict.charge()
	}
	return verdict
}

// Usage are both windows as they stand; Admitted says whether one more request fits.
func (s *AnonymousTable) Usage(from netip.Addr, now ClockReading, allowance Quota) QuotaResult {
	row, _ := s.find(from)
	if row == nil {
		row = &anonymousClient{}
	}
	return row.quotaResult(now, allowance)
}

// Refund takes an admission of an address back; at is its moment. Nothing happens when the row or the day has gone.
func (s *AnonymousTable) Refund(from netip.Addr, at ClockReading) {
	row, _ := s.find(from)
	if row == nil {
		return
	}
	row.minute.refund(at)
	if row.day.Day == at.today() && row.day.Count > 0 {
		row.day.Count--
	}
}

func (r *anonymousClient) quotaResult(now ClockReading, allowance Quota) QuotaResult {
	r.minute.expire(now)
	today := max(now.today(), r.day.Day) // as tally counts: it never goes back
	day := Window{allowance.Day, max(0, allowance.Day-r.day.on(today)), (today + 1).Start()}
	return quotaResultOf(day, r.minute.window(allowance.Minute, now), now.Wall)
}

// find is the row of an address, nil when it has none, and the row that it may take: a free one, or the one that was quiet longest.
func (s *AnonymousTable) find(from netip.Addr) (row, quietest *anonymousClient) {
	key, v4 := addressKey(from)
	sets := uint64(len(s.rows) / rowsPerSet)
	set := s.rows[s.hash(key)%sets*rowsPerSet:][:rowsPerSet]
	quietest = &set[0]
	for i := range set {
		row := &set[i]
		if row.used && row.key == key && row.v4 == v4 {
			return row, nil
		}
		if quietest.used && (!row.used || row.last < quietest.last) {
			quietest = row
		}
	}
	return nil, quietest
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

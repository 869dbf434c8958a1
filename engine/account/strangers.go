package account

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// Shape of the table of strangers.
const (
	strangerWays = 8 // rows that an address may stand in
	// StrangersDefault is how many addresses a table remembers.
	StrangersDefault = 1 << 16
)

// Strangers counts callers without a key by client address (L8), in a table of fixed size and in memory only: a restart forgets
// them, and when more addresses call than it has rows, the one of eight that was quiet longest gives its row away.
type Strangers struct {
	rows []stranger
	hash func(key uint64) uint64
}

type stranger struct {
	key    uint64 // the upper half of an IPv6 address, or an IPv4 address
	v4     bool
	used   bool
	last   time.Duration
	day    Tally
	minute minute
}

// NewStrangers has room for about so many addresses. hash spreads keys over the rows and should be seeded by chance, so that
// nobody can choose addresses that crowd each other out.
func NewStrangers(rows int, hash func(uint64) uint64) *Strangers {
	sets := max(1, (rows+strangerWays-1)/strangerWays)
	return &Strangers{rows: make([]stranger, sets*strangerWays), hash: hash}
}

// Admit asks for one request of an address now, and charges it.
func (s *Strangers) Admit(from netip.Addr, now Moment, allowance Allowance) Verdict {
	row, quietest := s.find(from)
	if row == nil {
		row = quietest
		key, v4 := addressKey(from)
		*row = stranger{key: key, v4: v4, used: true, minute: minute{admitted: row.minute.admitted[:0]}}
	}
	row.last = now.Steady
	verdict := row.verdict(now, allowance)
	if verdict.Admitted {
		row.day.add(now.today())
		row.minute.add(now)
		verdict.charge()
	}
	return verdict
}

// Windows are both windows as they stand; Admitted says whether one more request fits.
func (s *Strangers) Windows(from netip.Addr, now Moment, allowance Allowance) Verdict {
	row, _ := s.find(from)
	if row == nil {
		row = &stranger{}
	}
	return row.verdict(now, allowance)
}

// Refund takes an admission of an address back; at is its moment. Nothing happens when the row or the day has gone.
func (s *Strangers) Refund(from netip.Addr, at Moment) {
	row, _ := s.find(from)
	if row == nil {
		return
	}
	row.minute.refund(at)
	if row.day.Day == at.today() && row.day.Count > 0 {
		row.day.Count--
	}
}

func (r *stranger) verdict(now Moment, allowance Allowance) Verdict {
	r.minute.expire(now)
	today := max(now.today(), r.day.Day) // as tally counts: it never goes back
	day := Window{allowance.Day, max(0, allowance.Day-r.day.on(today)), (today + 1).Start()}
	return verdictOf(day, r.minute.window(allowance.Minute, now), now.Wall)
}

// find is the row of an address, nil when it has none, and the row that it may take: a free one, or the one that was quiet longest.
func (s *Strangers) find(from netip.Addr) (row, quietest *stranger) {
	key, v4 := addressKey(from)
	sets := uint64(len(s.rows) / strangerWays)
	set := s.rows[s.hash(key)%sets*strangerWays:][:strangerWays]
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

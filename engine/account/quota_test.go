package account

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

var defaultPolicy = QuotaPolicy{DefaultQuota: DefaultQuota(), LeaseSize: LeaseSizeDefault}

// testAccount is an account whose leases are durable at once.
type testAccount struct {
	t       testing.TB
	account *Account
	now     ClockReading
	policy  QuotaPolicy
	leases  int
}

func newTestAccount(t testing.TB, wall time.Time) *testAccount {
	account := New(1)
	account.Apply(&Created{1, idOf("a@b.do"), wall}, ClockReading{})
	account.Apply(&KeyCreated{1, KeyRecord{ID: "k1", Digest: testKey, CreatedAt: wall}}, ClockReading{})
	return &testAccount{t: t, account: account, now: ClockReading{Wall: wall}, policy: defaultPolicy}
}

func (o *testAccount) advance(d time.Duration) {
	o.now.Wall, o.now.Monotonic = o.now.Wall.Add(d), o.now.Monotonic+d
}

func (o *testAccount) ask() QuotaResult {
	result, needsLease := o.account.Admit(testKey, o.now, o.policy)
	if needsLease {
		if !o.lease(1) {
			o.t.Fatalf("at %s: no lease for a request that waits", o.now.Wall)
		}
		if result, needsLease = o.account.Admit(testKey, o.now, o.policy); needsLease {
			o.t.Fatal("a durable lease did not help")
		}
	}
	o.lease(0)
	return result
}

// leased applies a lease that the account awaits.
func (o *testAccount) leased(e *Leased) {
	o.account.asking, o.account.askedAt = true, e.Monotonic
	o.account.Apply(e, o.now)
}

func (o *testAccount) lease(waiting int) bool {
	lease := o.account.NextLease(testKey, o.now, o.policy, waiting)
	if lease != nil {
		o.leases++
		o.account.Apply(lease, o.now)
	}
	return lease != nil
}

// admit makes so many requests, all of which must be admitted.
func (o *testAccount) admit(n int) {
	o.t.Helper()
	for i := range n {
		if v := o.ask(); !v.Admitted {
			o.t.Fatalf("request %d of %d at %s: %+v", i+1, n, o.now.Wall, v)
		}
	}
}

// refuse makes a request that must be refused.
func (o *testAccount) refuse(code engine.Code, retry time.Duration) QuotaResult {
	o.t.Helper()
	v := o.ask()
	if v.Admitted || v.DenyCode != code || v.RetryAfter != retry {
		o.t.Fatalf("at %s: %+v, want %s for %s", o.now.Wall, v, code, retry)
	}
	return v
}

// restart is a clean stop and another process.
func (o *testAccount) restart() {
	if event := o.account.Return(o.now); event != nil {
		o.account.Apply(event, o.now)
	}
	o.account = Restore(o.account.State())
	o.account.Resume(o.now)
}

func TestL1_LeaseOfOneTakesAllThatWait(t *testing.T) {
	o := newTestAccount(t, noon)
	o.policy.LeaseSize = 1
	for waiting, want := range map[int]int{1: 1, 40: 40, 500: 60} {
		account := Restore(o.account.State())
		lease := account.NextLease(testKey, o.now, o.policy, waiting)
		if lease.Count != want || lease.KeyID != "k1" {
			t.Errorf("%d wait: %+v", waiting, lease)
		}
		if account.NextLease(testKey, o.now, o.policy, waiting) != nil {
			t.Error("two leases in flight")
		}
		account.Abort(lease, false)
		if account.NextLease(testKey, o.now, o.policy, waiting) == nil {
			t.Error("no lease after a lost one")
		}
	}
	if o.account.NextLease(testKey, o.now, o.policy, 0) != nil {
		t.Error("a lease that is not needed")
	}
}

// A clock that was set back opens no earlier day: the newest day counts on.
func TestX19_EarlierDaysStayClosed(t *testing.T) {
	const days = 5
	o := newTestAccount(t, noon)
	o.policy.DefaultQuota.Day = 3
	first := o.now
	for range days {
		o.admit(3)
		o.refuse(engine.CodeQuotaExceeded, engine.NextMidnight(o.now.Wall).Sub(o.now.Wall))
		o.advance(24 * time.Hour)
	}
	for back := range days + 3 {
		o.now.Wall = first.Wall.AddDate(0, 0, back-3)
		if v := o.account.Usage(o.now, o.policy); v.Admitted || v.Day.Remaining != 0 {
			t.Errorf("day %d is open again: %+v", back-3, v)
		}
	}
	if state := o.account.State(); len(state.Days) != 1 || state.Days[0] != (DayState{engine.DateOf(first.Wall) + days - 1, 3}) {
		t.Errorf("%+v", state.Days)
	}
}

// Snapshots of earlier versions have several days. Only the newest may be charged, with what was leased of it.
func TestX19_ASnapshotOfSeveralDays(t *testing.T) {
	o := newTestAccount(t, noon)
	state, today := o.account.State(), engine.DateOf(noon)
	state.Days = []DayState{{today - 3, 7}, {today - 1, 990}, {today, 995}}
	o.account = Restore(state)
	o.account.Resume(o.now)
	if days := o.account.State().Days; len(days) != 1 || days[0] != state.Days[2] {
		t.Errorf("%+v", days)
	}
	o.now.Wall = noon.AddDate(0, 0, -1)
	if v := o.account.Usage(o.now, o.policy); v.Day.Remaining != DayLimitDefault-995 {
		t.Errorf("with the clock set back %+v", v)
	}
}

func TestL1_InstantsOutsideTheCalendarHaveNoRoom(t *testing.T) {
	o := newTestAccount(t, noon)
	for _, wall := range []time.Time{{}, time.Unix(1<<40, 0), time.Unix(-1<<40, 0)} {
		o.now.Wall = wall
		if v := o.ask(); v.Admitted || v.DenyCode != engine.CodeQuotaExceeded {
			t.Errorf("%v: %+v", wall, v)
		}
	}
}

func TestL2_LoweredLimitWaitsForRoom(t *testing.T) {
	o := newTestAccount(t, noon)
	for range 60 {
		o.admit(1)
		o.advance(500 * time.Millisecond)
	}
	o.account.Apply(&QuotaSet{Account: 1, Quota: Quota{Minute: 10}}, o.now)
	o.refuse(engine.CodeRateLimited, 30*time.Second+50*500*time.Millisecond) // the fifty-first has to leave
	o.advance(55 * time.Second)
	o.admit(1)
	o.account.Apply(&QuotaSet{Account: 1, Quota: Quota{Day: 20}}, o.now)
	o.refuse(engine.CodeQuotaExceeded, engine.NextMidnight(o.now.Wall).Sub(o.now.Wall))
	o.account.Apply(&QuotaSet{Account: 1, Quota: Quota{Day: 100, Minute: 90}}, o.now)
	o.advance(time.Minute)
	o.admit(39)
	o.refuse(engine.CodeQuotaExceeded, engine.NextMidnight(o.now.Wall).Sub(o.now.Wall))
}

// With both windows full, the one that resets later denies the request.
func TestL5_BothViolatedWaitsForTheLater(t *testing.T) {
	for _, tt := range []struct {
		before time.Duration // midnight
		code   engine.Code
		want   time.Duration
	}{{time.Hour, engine.CodeQuotaExceeded, time.Hour}, {time.Minute, engine.CodeQuotaExceeded, time.Minute}, {10 * time.Second, engine.CodeRateLimited, time.Minute}} {
		o := newTestAccount(t, at("2026-06-18T04:00:00Z").Add(-tt.before))
		o.policy.DefaultQuota = Quota{5, 5}
		o.admit(3)
		left := o.account.Usage(o.now, o.policy)
		if tighter := left.TighterWindow(); tighter.Remaining != 2 || !tighter.Reset.Equal(o.now.Wall.Add(tt.want)) { // L3: a tie
			t.Errorf("%s before midnight, 2 left of both: %+v", tt.before, tighter)
		}
		o.admit(2)
		v := o.refuse(tt.code, tt.want)
		if tighter := v.TighterWindow(); !tighter.Reset.Equal(o.now.Wall.Add(tt.want)) || tighter.Remaining != 0 {
			t.Errorf("%s before midnight: %+v", tt.before, tighter)
		}
		o.advance(tt.want)
		o.admit(1)
	}
}

func TestL8_AnonymousByPrefix(t *testing.T) {
	s := NewAnonymousTable(64, func(key uint64) uint64 { return key })
	now := ClockReading{Wall: noon}
	groups := [][]string{
		{"192.0.2.1", "::ffff:192.0.2.1"},
		{"192.0.2.2"},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:2::1%eth0"},
		{"2001:db8:1:3::1"},
		{"::1"}, {"0.0.0.0"},
	}
	for _, group := range groups {
		for i := range 10 {
			from := netip.MustParseAddr(group[i%len(group)])
			if v := s.Admit(from, now, Quota{100, 10}); !v.Admitted || v.Minute.Remaining != 9-i || v.Day.Remaining != 99-i {
				t.Fatalf("%s, request %d: %+v", from, i+1, v)
			}
		}
		from := netip.MustParseAddr(group[0])
		if v := s.Admit(from, now, Quota{100, 10}); v.Admitted || v.DenyCode != engine.CodeRateLimited || v.RetryAfter != time.Minute {
			t.Errorf("%s: %+v", from, v)
		}
		s.Refund(from, now)
		if v := s.Usage(from, now, Quota{100, 10}); v.Minute.Remaining != 1 || v.Day.Remaining != 91 {
			t.Errorf("%s after a refund: %+v", from, v)
		}
	}
}

// Usage returns both quota windows of an address without charging a request.
func (t *AnonymousTable) Usage(addr netip.Addr, now ClockReading, quota Quota) QuotaResult {
	if row, _ := t.find(addr, clientNetworks(addr)[0].bits); row != nil {
		return row.quotaResult(now, quota)
	}
	return (&anonymousClient{}).quotaResult(now, quota)
}

// A /56 has the quota of 16 clients, a /48 that of 64: for the holder of a /48 65,536 networks are not as many clients.
// A refund counts for all, and another /48 is not affected.
func TestL8_AnonymousByNetwork(t *testing.T) {
	now, quota := ClockReading{Wall: noon}, Quota{1000, 10}
	for _, tt := range []struct {
		network, admitted int
		address           func(i int) [8]byte
	}{
		{56, 160, func(i int) [8]byte { return [8]byte{0x20, 1, 13, 184, 1, 2, 3, byte(i)} }},
		{48, 640, func(i int) [8]byte { return [8]byte{0x20, 1, 13, 184, 1, 2, byte(i), byte(i >> 8)} }},
	} {
		s := NewAnonymousTable(AnonymousRowsDefault, func(key uint64) uint64 { return key * 0x9e3779b97f4a7c15 >> 20 })
		from := func(i int) netip.Addr {
			half := tt.address(i)
			return netip.AddrFrom16([16]byte(append(half[:], 0, 0, 0, 0, 0, 0, 0, 1)))
		}
		admitted, last := 0, QuotaResult{}
		for i := range 3000 {
			now.Monotonic++
			if last = s.Admit(from(i), now, quota); last.Admitted {
				admitted++
			}
		}
		if admitted != tt.admitted || last.DenyCode != engine.CodeRateLimited || last.Minute.Remaining != 0 || last.Minute.Limit != 10 || last.RetryAfter <= 0 {
			t.Errorf("/%d: %d admitted, the last: %+v", tt.network, admitted, last)
		}
		s.Refund(from(0), ClockReading{Wall: noon, Monotonic: now.Monotonic - 2999})
		if !s.Admit(from(1), now, quota).Admitted || s.Admit(from(2), now, quota).Admitted {
			t.Errorf("/%d: a refund does not make room for one request", tt.network)
		}
		if !s.Admit(netip.MustParseAddr("2001:db8:ffff::1"), now, quota).Admitted {
			t.Errorf("/%d: another network is denied", tt.network)
		}
	}
}

func TestL8_AnonymousOfADay(t *testing.T) {
	s := NewAnonymousTable(1, func(key uint64) uint64 { return key })
	from, now := netip.MustParseAddr("192.0.2.1"), ClockReading{Wall: at("2026-06-18T03:00:00Z")}
	allowance := Quota{5, 60}
	before := now
	for range 5 {
		s.Admit(from, now, allowance)
	}
	if v := s.Admit(from, now, allowance); v.DenyCode != engine.CodeQuotaExceeded || v.RetryAfter != time.Hour {
		t.Errorf("%+v", v)
	}
	now.Wall, now.Monotonic = now.Wall.Add(time.Hour), time.Hour
	if v := s.Admit(from, now, allowance); !v.Admitted || v.Day.Remaining != 4 {
		t.Errorf("%+v", v)
	}
	s.Refund(from, before) // of yesterday: today's count stands
	if v := s.Usage(from, now, allowance); v.Day.Remaining != 4 {
		t.Errorf("%+v", v)
	}
	now.Wall = before.Wall // the clock goes back: the later day counts on, to its end
	if v := s.Usage(from, now, allowance); v.Day.Remaining != 4 || !v.Day.Reset.Equal(at("2026-06-19T04:00:00Z")) {
		t.Errorf("%+v", v)
	}
}

func TestL8_AnonymousTableIsBounded(t *testing.T) {
	s := NewAnonymousTable(rowsPerSet, func(uint64) uint64 { return 7 })
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	now, allowance := ClockReading{Wall: noon}, Quota{100, 10}
	for i := range rowsPerSet {
		now.Monotonic++
		s.Admit(addr(i), now, allowance)
	}
	now.Monotonic++
	s.Admit(addr(0), now, allowance) // so that 1 is the quietest
	s.Usage(addr(500), now, allowance)
	s.Refund(addr(501), now)
	now.Monotonic++
	s.Admit(addr(100), now, allowance)
	for i, want := range map[int]int{0: 8, 1: 10, 2: 9, 100: 9, 500: 10} {
		if v := s.Usage(addr(i), now, allowance); v.Minute.Remaining != want {
			t.Errorf("address %d: %d remaining, want %d", i, v.Minute.Remaining, want)
		}
	}
	if len(s.rows) != rowsPerSet {
		t.Errorf("%d rows", len(s.rows))
	}
}

// minuteWaste bounds the capacity of a window in relation to what was in it.
const minuteWaste = 4

// movedMax bounds how many admissions one request moves on average.
const movedMax = 2

// The cost of a request does not depend on the size of the window, and the memory is bounded by what was in it.
func TestF11_MinuteCostsTheSame(t *testing.T) {
	for _, limit := range []int{60, 600, 60_000} {
		var m minuteWindow
		if moved := movedBy(&m, limit); moved > movedMax || cap(m.admitted) > minuteWaste*limit {
			t.Errorf("with %d in the window a request moves %d others; there is room for %d", limit, moved, cap(m.admitted))
		}
	}
}

// movedBy is how many admissions a request moves on average in a full window. A move overwrites the first expired
// entry.
func movedBy(m *minuteWindow, limit int) int {
	now := ClockReading{Wall: noon, Monotonic: time.Hour}
	moved, requests := 0, 10*limit
	for range requests {
		now.Monotonic += MinuteSpan / time.Duration(limit)
		m.expire(now)
		gone, places, stay := m.expired, cap(m.admitted), len(m.active())
		m.add(now)
		if gone > m.expired || cap(m.admitted) != places {
			moved += stay
		}
	}
	return moved / requests
}

// TestL1_LeasesDouble: an account that uses a lease up within a second gets twice as many, at most 256 and a tenth of
// what is left of the day; one that asks once a second, or pauses, gets leases of 16.
func TestL1_LeasesDouble(t *testing.T) {
	for name, tt := range map[string]struct {
		day      int
		pause    time.Duration // between requests
		requests int
		want     []int // sizes of the leases: unspent and new ones
	}{
		"as fast as it can":      {100_000, time.Millisecond, 600, []int{16, 32, 64, 128, 256, 256, 256, 256}},
		"a tenth of the day":     {1000, time.Millisecond, 60, []int{16, 32, 64, 91}},
		"a day that ends":        {100, time.Millisecond, 60, []int{16, 16, 16, 16, 16, 16, 16}},
		"once a second":          {100_000, time.Second, 33, []int{16, 16, 16, 16, 16}},
		"sixteen in two seconds": {100_000, 126 * time.Millisecond, 33, []int{16, 16, 16, 16, 16}},
	} {
		o := newTestAccount(t, noon)
		o.policy.DefaultQuota = Quota{Day: tt.day, Minute: 100_000}
		var sizes []int
		for range tt.requests {
			if lease := o.account.NextLease(testKey, o.now, o.policy, 0); lease != nil {
				sizes = append(sizes, o.account.days.unspent()+lease.Count)
				o.account.Apply(lease, o.now)
			}
			if result, _ := o.account.Admit(testKey, o.now, o.policy); result.DenyCode != "" && result.DenyCode != engine.CodeQuotaExceeded {
				t.Fatalf("%s: %+v", name, result)
			}
			o.advance(tt.pause)
		}
		if len(sizes) < len(tt.want) || !slices.Equal(sizes[:len(tt.want)], tt.want) {
			t.Errorf("%s: leases %v, want %v", name, sizes, tt.want)
		}
	}
}

// TestL1_TheNextLeaseComesAtHalf tries every number of unspent requests.
func TestL1_TheNextLeaseComesAtHalf(t *testing.T) {
	for unspent := range LeaseSizeDefault + 1 {
		for waiting := range 2 {
			o := newTestAccount(t, noon)
			o.leased(&Leased{Account: 1, Day: engine.DateOf(noon), Count: unspent, At: noon})
			lease := o.account.NextLease(testKey, o.now, o.policy, waiting)
			want := unspent < LeaseSizeDefault && (waiting > 0 || unspent <= LeaseSizeDefault/2)
			if (lease != nil) != want || lease != nil && lease.Count != LeaseSizeDefault-unspent {
				t.Errorf("%d unspent, %d waiting: %+v", unspent, waiting, lease)
			}
		}
	}
}

func TestL6_RefundsOfOtherTimesChangeNothing(t *testing.T) {
	o := newTestAccount(t, noon)
	o.leased(&Leased{Account: 1, Day: engine.DateOf(noon), Count: 3, At: noon})
	o.advance(time.Second)
	o.account.Refund(o.now)
	if c := o.account.days.get(engine.DateOf(noon)); c.spent != 0 || c.refunded != 0 {
		t.Errorf("nothing was spent, and a refund left %+v", c)
	}
	s := NewAnonymousTable(8, func(key uint64) uint64 { return key })
	from := netip.MustParseAddr("192.0.2.1")
	s.Admit(from, o.now, DefaultQuota())
	for range 2 {
		s.Refund(from, o.now)
	}
	if v := s.Usage(from, o.now, DefaultQuota()); v.Day.Remaining != DayLimitDefault || v.Minute.Remaining != MinuteLimitDefault {
		t.Errorf("one request and two refunds leave %+v", v)
	}
	for n := range 3 {
		s.Admit(from, o.now, DefaultQuota())
		if v := s.Usage(from, o.now, DefaultQuota()); v.Day.Remaining != DayLimitDefault-1-n {
			t.Errorf("after %d requests: %+v", n+1, v)
		}
	}
}

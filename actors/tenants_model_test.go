package actors

import (
	"fmt"
	"time"

	"github.com/tasard/tasard/engine"
)

// reference is what the contract says of one account, counted in the simplest way there is. True time is
// what really goes by, whatever clocks say and whether a node runs or not.
type reference struct {
	number    int
	email     engine.Email
	token     engine.Digest
	keys      []referenceKey
	admitted  []time.Duration     // true times
	days      map[engine.Date]int // admitted
	slack     map[engine.Date]int // the most that crashes have cost
	refunded  map[engine.Date]int
	latest    engine.Date // day that certainly was leased from: the day that counts is never before it
	allowance engine.Allowance
	suspended bool
}

type referenceKey struct {
	id      string
	digest  engine.Digest
	revoked bool
}

// daysCertain is how many days an account certainly remembers; with more, which takes a clock that jumps,
// it may refuse what it could allow.
const daysCertain = 7

func newReference(number int, m *member, allowance engine.Allowance) *reference {
	return &reference{
		number: number, email: m.email, token: m.token, allowance: allowance,
		days: map[engine.Date]int{}, slack: map[engine.Date]int{}, refunded: map[engine.Date]int{},
	}
}

// today is the day that counts: that of the wall clock, but never one before a day that was leased from.
func (r *reference) today(wall time.Time) engine.Date { return max(engine.DateOf(wall), r.latest) }

// counts takes over the day that the node says to count for; false when it has gone back.
func (r *reference) counts(day engine.Date, wall time.Time) bool {
	today := r.today(wall)
	if day > engine.DateOf(wall) {
		r.latest = max(r.latest, day) // of a lease of which nothing was admitted
	}
	return day >= today
}

// within counts the admissions of the last minute of true time.
func (r *reference) within(now time.Duration) int {
	count := 0
	for _, at := range r.admitted {
		if now-at < engine.MinuteSpan {
			count++
		}
	}
	return count
}

func (r *reference) active() int {
	count := 0
	for _, key := range r.keys {
		if !key.revoked {
			count++
		}
	}
	return count
}

// forfeit is what a crash costs at most: a lease, and refunds that no lease has taken up yet.
func (r *reference) forfeit(lease int, but engine.Date) {
	for day := range r.days {
		if day != but {
			r.slack[day] += lease + r.refunded[day]
			r.refunded[day] = 0
		}
	}
}

// world is a node, its accounts by the book, and true time.
type world struct {
	*node
	accounts []*reference
	lease    int
	now      time.Duration // true
	booted   time.Duration // steady time of the last start
	granted  int
	refusals int
	ill      error // what the disk answers at the moment
	faults   int
}

// judge holds an admission against the reference.
func (w *world) judge(r *reference, key referenceKey, grant engine.Grant, err error) error {
	switch {
	case w.suffered(err):
		return nil
	case err != nil:
		return fmt.Errorf("admission: %w", err)
	case grant.Account == 0:
		if !key.revoked && !r.suspended {
			return fmt.Errorf("a good key is nobody's: %+v", grant)
		}
		return nil
	case grant.Account != uint64(r.number) || key.revoked || r.suspended:
		return fmt.Errorf("a bad key is let in: %+v", grant)
	case !r.counts(grant.At.Day, w.clock.read()):
		return fmt.Errorf("the day that counts went back from %s to %s", r.today(w.clock.read()), grant.At.Day)
	}
	day := grant.At.Day
	if grant.Admitted {
		r.latest = day
		r.admitted = append(r.admitted, w.now)
		r.days[day]++
		w.granted++
		if minute := r.within(w.now); minute > r.allowance.Minute {
			return fmt.Errorf("%d admitted within 60 s, at most %d", minute, r.allowance.Minute)
		}
		if r.days[day] > r.allowance.Day {
			return fmt.Errorf("%d admitted on %s, at most %d", r.days[day], day, r.allowance.Day)
		}
		return nil
	}
	w.refusals++
	certain := len(r.days) <= daysCertain
	switch grant.Violated {
	case engine.CodeQuotaExceeded:
		if certain && r.days[day]+r.slack[day] < r.allowance.Day {
			return fmt.Errorf("refused with %d of %d spent on %s", r.days[day], r.allowance.Day, day)
		}
	case engine.CodeRateLimited:
		if r.within(w.now) < r.allowance.Minute && w.steady.read()-w.booted >= engine.MinuteSpan {
			return fmt.Errorf("refused with %d of %d within 60 s", r.within(w.now), r.allowance.Minute)
		}
	default:
		return fmt.Errorf("refused with %q", grant.Violated)
	}
	return nil
}

// inspect holds everything that can be asked about an account against the reference.
func (w *world) inspect(r *reference) error {
	record, verdict, err := w.ShowAccount(uint64(r.number))
	if err != nil {
		return err
	}
	day := engine.DateOf(verdict.Day.Reset) - 1
	if !r.counts(day, w.clock.read()) {
		return fmt.Errorf("account %d counts for %s after %s", r.number, day, r.today(w.clock.read()))
	}
	spent := verdict.Day.Limit - verdict.Day.Remaining
	least, most := min(r.allowance.Day, r.days[day]), min(r.allowance.Day, r.days[day]+r.slack[day])
	if spent < least || spent > most && len(r.days) <= daysCertain {
		return fmt.Errorf("account %d has spent %d, want %d to %d", r.number, spent, least, most)
	}
	if record.Email != r.email.ID() || record.SuspendedAt.IsZero() == r.suspended || len(record.Keys) != len(r.keys) {
		return fmt.Errorf("account %d: %+v, want %+v", r.number, record, r)
	}
	for i, key := range record.Keys {
		if key.ID != r.keys[i].id || key.Digest != r.keys[i].digest || key.Active() == r.keys[i].revoked {
			return fmt.Errorf("account %d: key %+v, want %+v", r.number, key, r.keys[i])
		}
	}
	return nil
}

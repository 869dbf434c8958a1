package engine

import "time"

// Terms are what the node grants, and how it keeps the books.
type Terms struct {
	Allowance Allowance // of whoever has none of its own
	Lease     int       // requests taken from the log at once; 1 = every request is durable before it is answered
}

// Need says what an admission lacks.
type Need int

// The needs of an admission.
const (
	Nothing     Need = iota // the verdict stands
	LeaseNeeded             // nothing leased is left: ask again when the lease is durable
)

func (a *Account) allowance(terms Terms) Allowance {
	own := a.record.Allowance
	if own.Day == 0 {
		own.Day = terms.Allowance.Day
	}
	if own.Minute == 0 {
		own.Minute = terms.Allowance.Minute
	}
	return own
}

// Admit asks for one request now in the name of a key (L1, L2). With LeaseNeeded nothing is decided yet: ask again when the lease is
// durable. An admission is charged at once; Refund takes it back when the answer turns out to cost nothing (L6).
func (a *Account) Admit(digest Digest, now Moment, terms Terms) (Verdict, Need) {
	key, violated := a.authenticate(digest)
	if violated != "" {
		return Verdict{Violated: violated}, Nothing
	}
	limits := a.allowance(terms)
	a.minute.expire(now)
	count := a.days.at(DateOf(now.Wall))
	if verdict := a.verdict(now, limits); !verdict.Admitted {
		return verdict, Nothing
	}
	if count.spent >= count.leased {
		return Verdict{}, LeaseNeeded
	}
	key.LastUsed = now.Wall
	count.spent++
	a.minute.admitted = append(a.minute.admitted, now.Steady)
	verdict := a.verdict(now, limits)
	verdict.Admitted, verdict.Violated, verdict.RetryAfter = true, "", 0
	return verdict, Nothing
}

// authenticate finds the key of a digest, or the code that refuses it.
func (a *Account) authenticate(digest Digest) (*KeyRecord, Code) {
	for i := range a.record.Keys {
		key := &a.record.Keys[i]
		switch {
		case key.Digest != digest:
		case !key.Active():
			return nil, CodeRevokedKey
		case !a.record.SuspendedAt.IsZero():
			return nil, CodeAccountSuspended
		default:
			return key, ""
		}
	}
	return nil, CodeInvalidKey
}

// Windows are both windows as they stand, without a request (usage, refusals of other kinds).
func (a *Account) Windows(now Moment, terms Terms) Verdict {
	a.minute.expire(now)
	return a.verdict(now, a.allowance(terms))
}

// verdict says whether one more request fits. A closed day, which only a clock that jumps can bring back, has no room.
func (a *Account) verdict(now Moment, limits Allowance) Verdict {
	day := DateOf(now.Wall)
	spent := a.days.peek(day).spent
	if day <= a.days.floor {
		spent = limits.Day
	}
	return verdictOf(Window{limits.Day, max(0, limits.Day-spent), NextMidnight(now.Wall)}, a.minute.window(limits.Minute, now), now.Wall)
}

func verdictOf(day, minute Window, now time.Time) Verdict {
	v := Verdict{Admitted: true, Day: day, Minute: minute}
	if minute.Remaining == 0 {
		v.Admitted, v.Violated, v.RetryAfter = false, CodeRateLimited, minute.Reset.Sub(now)
	}
	if day.Remaining == 0 {
		v.Admitted, v.Violated, v.RetryAfter = false, CodeQuotaExceeded, max(v.RetryAfter, day.Reset.Sub(now))
	}
	return v
}

// Refund takes the newest admission of a day back.
func (a *Account) Refund(admitted time.Time) {
	if count := a.days.at(DateOf(admitted)); count != nil && count.spent > 0 {
		count.spent--
	}
	a.minute.refund()
}

// NextLease is the lease to ask the log for, nil while there is no need: so many that at most one lease is unspent afterwards, asked
// for before the last one is used up, and never beyond the day's limit. waiting is how many requests wait for it.
func (a *Account) NextLease(digest Digest, now Moment, terms Terms, waiting int) *Leased {
	day := DateOf(now.Wall)
	count := a.days.peek(day)
	unspent := count.leased - count.spent
	if a.asked > 0 || day <= a.days.floor || waiting == 0 && (terms.Lease == 1 || unspent > terms.Lease/2) {
		return nil
	}
	want := min(max(terms.Lease-unspent, waiting), a.allowance(terms).Day-count.leased)
	if want <= 0 {
		return nil
	}
	a.asked = want
	key, _ := a.Key(digest)
	return &Leased{a.record.ID, day, want, now.Steady, key.ID, universal(now.Wall)}
}

// LeaseLost says that the lease asked for did not become durable.
func (a *Account) LeaseLost() { a.asked = 0 }

// Idle reports that the account needs no actor: nothing is in flight and the minute is empty.
func (a *Account) Idle(now Moment) bool { return a.asked == 0 && a.minute.idle(now) }

// Return is what a clean stop gives back, nil when there is nothing to say.
func (a *Account) Return(now Moment) *Returned {
	a.minute.expire(now)
	day := DateOf(now.Wall)
	count := a.days.peek(day)
	unspent, recent := count.leased-count.spent, len(a.minute.admitted)
	if unspent == 0 && len(a.leases) == 0 {
		return nil
	}
	return &Returned{a.record.ID, day, unspent, recent, now.Steady}
}

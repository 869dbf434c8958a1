package account

import "github.com/tasard/tasard/engine"

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
// durable, at the moment that it is then. An admission is charged at once; Refund takes it back when the answer turns out to cost
// nothing (L6).
func (a *Account) Admit(digest Digest, now Moment, terms Terms) (Verdict, Need) {
	key, violated := a.authenticate(digest)
	if violated != "" {
		return Verdict{Violated: violated}, Nothing
	}
	verdict := a.Windows(now, terms)
	if !verdict.Admitted {
		return verdict, Nothing
	}
	count := a.days.find(a.today(now))
	if count == nil || a.spendable(*count, now) <= 0 {
		return Verdict{}, LeaseNeeded
	}
	key.used = universal(now.Wall)
	count.spent++
	if a.node != 0 {
		a.purse.tokens--
		a.purse.pace.spent++
	}
	a.minute.add(now)
	verdict.charge()
	return verdict, Nothing
}

// authenticate finds the key of a digest, or the code that refuses it.
func (a *Account) authenticate(digest Digest) (*accountKey, engine.Code) {
	switch key := a.byDigest(digest); {
	case key == nil:
		return nil, engine.CodeInvalidKey
	case !key.record.Active():
		return nil, engine.CodeRevokedKey
	case !a.record.SuspendedAt.IsZero():
		return nil, engine.CodeAccountSuspended
	default:
		return key, ""
	}
}

// today is the day that a moment counts for. It never goes back: with a clock that was set back, all counts for the latest day that
// the account has leased from, which the log knows, until the clock has passed it. So no step opens a day twice (L1). An instant outside
// the calendar has no day.
func (a *Account) today(now Moment) engine.Date {
	if day := now.today(); day != 0 {
		return max(day, a.days.newest())
	}
	return 0
}

// Dated is a moment with the day that it counts for, as Refund wants it.
func (a *Account) Dated(now Moment) Moment {
	now.Day = a.today(now)
	return now
}

// Windows are both windows as they stand, without a request (usage, refusals of other kinds); Admitted says whether one more fits. A
// closed day has no room. In a cluster they are what this node can know: what others have leased counts as used, and what they
// leased a moment ago it may not have heard yet.
func (a *Account) Windows(now Moment, terms Terms) Verdict {
	a.minute.expire(now)
	limits, today := a.allowance(terms), a.today(now)
	room := max(0, limits.Day-a.days.peek(today).charged())
	if a.days.closed(today) {
		room = 0
	}
	return verdictOf(Window{limits.Day, room, (today + 1).Start()}, a.sharedMinute(limits.Minute, now), now.Wall)
}

// Idle reports that the account needs no actor: nothing is in flight and the minute is empty, whose memory it lets go.
func (a *Account) Idle(now Moment) bool {
	return !a.asking && !a.purse.returning && a.creating == 0 && a.minute.idle(now)
}

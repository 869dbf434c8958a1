package engine

import (
	"slices"
	"time"
)

// Limits of an account.
const (
	KeysActiveMax = 2 // interface §3, K5
	KeyNameMax    = 80
	keysKept      = 50 // revoked keys that an account still lists, newest first
)

// KeyRecord is a key as it is kept and listed: never the key itself (K1, K4).
type KeyRecord struct {
	ID        string
	Name      string
	Hint      string // last four characters
	Digest    Digest
	CreatedAt time.Time
	RevokedAt time.Time // zero while active
	LastUsed  time.Time // zero = never; after a crash it may be as old as the last lease
}

// Active reports that the key authenticates.
func (k *KeyRecord) Active() bool { return k.RevokedAt.IsZero() }

// AccountRecord is what the log knows of an account.
type AccountRecord struct {
	ID          uint64
	Email       Email
	CreatedAt   time.Time
	Keys        []KeyRecord // oldest first
	SuspendedAt time.Time   // zero while in good standing
	Reason      string      // of the suspension
	Allowance   Allowance   // zero = the node's own
}

// Account is one account with its two windows. Like a Book it has one owner, decides events and applies them when they are durable.
type Account struct {
	record AccountRecord
	days   days
	minute minute
	leases []leaseMark // of the last minute, and older ones as far as they may be unspent
	asked  int         // lease in flight: requested from the log and not yet durable
}

// leaseMark is when requests were leased, in steady time.
type leaseMark struct {
	at    time.Duration // steady
	count int
}

// AccountEvent is a fact about one account.
type AccountEvent interface {
	AccountID() uint64
	accountEvent()
}

// The facts of accounts. By is who did it: "owner" or the operator's name.
type (
	// AccountCreated begins an account, at the first code that was right.
	AccountCreated struct {
		Account uint64
		Email   Email
		At      time.Time
	}
	// KeyCreated adds an active key.
	KeyCreated struct {
		Account uint64
		Key     KeyRecord
	}
	// KeyRevoked ends a key for good.
	KeyRevoked struct {
		Account uint64
		KeyID   string
		At      time.Time
		By      string
	}
	// Leased takes requests of a day's quota; they count as spent for whoever reads the log. Steady is Moment.Steady.
	Leased struct {
		Account uint64
		Day     Date
		Count   int
		Steady  time.Duration
		KeyID   string // whose request asked for it
		At      time.Time
	}
	// Returned gives back at a clean stop what was leased and not spent (L1). Recent is how many requests were admitted in the
	// last minute.
	Returned struct {
		Account uint64
		Day     Date
		Unspent int
		Recent  int
		Steady  time.Duration
	}
	// Suspended refuses an account's keys.
	Suspended struct {
		Account uint64
		Reason  string
		At      time.Time
		By      string
	}
	// Restored ends a suspension.
	Restored struct {
		Account uint64
		At      time.Time
		By      string
	}
	// AllowanceSet gives an account limits of its own; zero fields are the node's.
	AllowanceSet struct {
		Account   uint64
		Allowance Allowance
		At        time.Time
		By        string
	}
)

// AccountID names the account.
func (e *AccountCreated) AccountID() uint64 { return e.Account }

// AccountID names the account.
func (e *KeyCreated) AccountID() uint64 { return e.Account }

// AccountID names the account.
func (e *KeyRevoked) AccountID() uint64 { return e.Account }

// AccountID names the account.
func (e *Leased) AccountID() uint64 { return e.Account }

// AccountID names the account.
func (e *Returned) AccountID() uint64 { return e.Account }

// AccountID names the account.
func (e *Suspended) AccountID() uint64 { return e.Account }

// AccountID names the account.
func (e *Restored) AccountID() uint64 { return e.Account }

// AccountID names the account.
func (e *AllowanceSet) AccountID() uint64 { return e.Account }

func (*AccountCreated) accountEvent() {}
func (*KeyCreated) accountEvent()     {}
func (*KeyRevoked) accountEvent()     {}
func (*Leased) accountEvent()         {}
func (*Returned) accountEvent()       {}
func (*Suspended) accountEvent()      {}
func (*Restored) accountEvent()       {}
func (*AllowanceSet) accountEvent()   {}

// NewAccount is an account without facts; AccountCreated is its first.
func NewAccount(id uint64) *Account { return &Account{record: AccountRecord{ID: id}} }

// Record is a copy of what is known of the account.
func (a *Account) Record() AccountRecord {
	record := a.record
	record.Keys = slices.Clone(record.Keys)
	return record
}

// Apply makes a durable event true, live and at recovery.
func (a *Account) Apply(event AccountEvent) {
	switch e := event.(type) {
	case *AccountCreated:
		a.record.Email, a.record.CreatedAt = e.Email, e.At
	case *KeyCreated:
		a.record.Keys = append(slices.Clip(a.record.Keys), e.Key)
		a.forgetKeys()
	case *KeyRevoked:
		a.revoke(e)
	case *Leased:
		a.lease(e)
		a.use(e.KeyID, e.At)
	case *Returned:
		a.giveBack(e)
	case *Suspended:
		a.record.SuspendedAt, a.record.Reason = e.At, e.Reason
	case *Restored:
		a.record.SuspendedAt, a.record.Reason = time.Time{}, ""
	case *AllowanceSet:
		a.record.Allowance = e.Allowance
	}
}

// forgetKeys keeps the list short: the oldest revoked keys leave it; their digests are unknown from then on, which refuses them too.
func (a *Account) forgetKeys() {
	for len(a.record.Keys) > keysKept {
		at := slices.IndexFunc(a.record.Keys, func(k KeyRecord) bool { return !k.Active() })
		a.record.Keys = slices.Concat(a.record.Keys[:at], a.record.Keys[at+1:])
	}
}

func (a *Account) revoke(e *KeyRevoked) {
	keys := slices.Clone(a.record.Keys)
	for i := range keys {
		if keys[i].ID == e.KeyID && keys[i].Active() {
			keys[i].RevokedAt = e.At
		}
	}
	a.record.Keys = keys
}

// use notes when a key was last used.
func (a *Account) use(id string, at time.Time) {
	for i := range a.record.Keys {
		if key := &a.record.Keys[i]; key.ID == id && at.After(key.LastUsed) {
			key.LastUsed = at
		}
	}
}

// Key is the record of a digest; false when the account has no such key, revoked ones included.
func (a *Account) Key(digest Digest) (KeyRecord, bool) {
	for _, key := range a.record.Keys {
		if key.Digest == digest {
			return key, true
		}
	}
	return KeyRecord{}, false
}

// CreateKey decides a new key: at most two are active at once (K5).
func (a *Account) CreateKey(key KeyRecord) (AccountEvent, error) {
	active := 0
	for i := range a.record.Keys {
		if a.record.Keys[i].Active() {
			active++
		}
	}
	if active >= KeysActiveMax {
		return nil, &Error{Code: CodeKeyLimitReached, Message: "the account has two active keys; revoke one first"}
	}
	return &KeyCreated{a.record.ID, key}, nil
}

// RevokeKey decides the end of a key. A key that is revoked already gives no event and no error: revoking is repeatable (K1).
func (a *Account) RevokeKey(id, by string, now time.Time) (AccountEvent, error) {
	for i := range a.record.Keys {
		switch key := &a.record.Keys[i]; {
		case key.ID != id:
		case key.Active():
			return &KeyRevoked{a.record.ID, id, now, by}, nil
		default:
			return nil, nil
		}
	}
	return nil, &Error{Code: CodeNotFound, Message: "the account has no key with this id"}
}

// Resume begins to count in a new process; now.Steady is the newest steady time in the log. What was leased counts as spent. Requests
// that may have been admitted in the last minute before the crash count as admitted now: a crash never opens a window (L1, L2).
func (a *Account) Resume(now Moment, terms Terms) {
	for i := range a.days.counts {
		a.days.counts[i].spent = a.days.counts[i].leased
	}
	a.asked = 0
	recent, older := 0, 0
	for _, mark := range a.leases {
		if now.Steady-mark.at < MinuteSpan {
			recent += mark.count
		} else {
			older += mark.count
		}
	}
	a.minute.admitted = a.minute.admitted[:0]
	for range min(a.allowance(terms).Minute, recent+min(older, terms.Lease)) {
		a.minute.admitted = append(a.minute.admitted, now.Steady)
	}
}

func (a *Account) lease(e *Leased) {
	a.asked = max(0, a.asked-e.Count)
	if count := a.days.at(e.Day); count != nil {
		count.leased += e.Count
	}
	a.mark(leaseMark{e.Steady, e.Count})
}

// mark forgets what is older than a minute but for the newest of it, whose requests may be spent much later.
func (a *Account) mark(next leaseMark) {
	a.leases = append(a.leases, next)
	for len(a.leases) > 1 && next.at-a.leases[1].at >= MinuteSpan {
		a.leases = slices.Delete(a.leases, 0, 1)
	}
}

func (a *Account) giveBack(e *Returned) {
	if count := a.days.at(e.Day); count != nil {
		count.leased = max(0, count.leased-e.Unspent)
		count.spent = min(count.spent, count.leased)
	}
	a.leases = a.leases[:0]
	if e.Recent > 0 {
		a.leases = append(a.leases, leaseMark{e.Steady, e.Recent})
	}
}

package account

import (
	"crypto/subtle"
	"fmt"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
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

// Record is what the log knows of an account.
type Record struct {
	ID          uint64
	Email       EmailID
	CreatedAt   time.Time
	Keys        []KeyRecord // oldest first
	SuspendedAt time.Time   // zero while in good standing
	Reason      string      // of the suspension
	Quota       Quota       // zero = the node's own
}

// Account is one account with its two windows. Like an engine.CurrencyState it has one owner, decides events and applies them when they are durable.
// Danger: what was spent of the leases is in no event and no state; whoever lets go of the Account without Return forfeits it.
type Account struct {
	record     Record       // without keys
	keys       []accountKey // oldest first
	days       dayCounts
	leases     []LeaseState // of this node alone, see mark
	nodeLeases []LeaseState // of the nodes of a cluster, by node

	// Of this process alone.
	node         engine.NodeID
	minute       minuteWindow
	leasePending bool          // a lease is on its way into the log
	leaseAskedAt time.Duration // steady time of the newest lease asked for
	keysPending  int           // keys on their way into the log
	tokenLease   tokenLease    // in a cluster
}

// accountKey is a key with its newest use, which the log learns only with the next lease.
type accountKey struct {
	record KeyRecord
	used   time.Time
}

// Event is a fact about one account.
type Event interface {
	AccountID() uint64
	accountEvent()
}

// The facts of accounts. By is who did it: "owner" or the operator's name.
type (
	// Created begins an account, at the first code that was right.
	Created struct {
		Account uint64
		Email   EmailID
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
	// Leased takes requests of a day's quota; they count as spent for whoever reads the log.
	Leased struct {
		Account        uint64
		Day            engine.Date
		Count          int
		Refunded       int           // requests of that day leased before, charged and refunded, that may be spent again from now on
		Unspent        int           // requests of any day that were leased before and not spent
		Steady         time.Duration // Moment.Steady
		KeyID          string        // whose request asked for it
		At             time.Time
		Node           engine.NodeID // that may spend it
		RecentAdmitted int           // in a cluster: admitted by that node in the minute before
	}
	// Returned gives back what was leased and not spent: at a clean stop (L1), and in a cluster when a node rests from an account.
	Returned struct {
		Account        uint64
		Day            engine.Date
		Unspent        int
		RecentAdmitted int // admitted in the last minute
		Steady         time.Duration
		Uses           []KeyUse      // of the keys used since the last lease
		Node           engine.NodeID // that had leased it
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
	// KeyUse is when a key was last used.
	KeyUse struct {
		KeyID string
		At    time.Time
	}
	// QuotaSet gives an account limits of its own; zero fields are the node's.
	QuotaSet struct {
		Account uint64
		Quota   Quota
		At      time.Time
		By      string
	}
)

// AccountID names the account.
func (e *Created) AccountID() uint64 { return e.Account }

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
func (e *QuotaSet) AccountID() uint64 { return e.Account }

func (*Created) accountEvent()    {}
func (*KeyCreated) accountEvent() {}
func (*KeyRevoked) accountEvent() {}
func (*Leased) accountEvent()     {}
func (*Returned) accountEvent()   {}
func (*Suspended) accountEvent()  {}
func (*Restored) accountEvent()   {}
func (*QuotaSet) accountEvent()   {}

// New is an account without facts; Created is its first.
func New(id uint64) *Account { return &Account{record: Record{ID: id}} }

// Record is a copy of what is known of the account.
func (a *Account) Record() Record {
	record := a.durableRecord()
	for i := range record.Keys {
		if used := a.keys[i].used; used.After(record.Keys[i].LastUsed) {
			record.Keys[i].LastUsed = used
		}
	}
	return record
}

// durableRecord is a copy of what the log knows.
func (a *Account) durableRecord() Record {
	record := a.record
	for i := range a.keys {
		record.Keys = append(record.Keys, a.keys[i].record)
	}
	return record
}

// Apply makes a durable event true: live one that this process decided, at recovery each. ApplyRemote is for those that others decided meanwhile.
func (a *Account) Apply(event Event) {
	switch e := event.(type) {
	case *Created:
		a.record.Email, a.record.CreatedAt = e.Email, e.At
	case *KeyCreated:
		a.keysPending = max(0, a.keysPending-1)
		a.addKey(e.Key)
	case *KeyRevoked:
		if key := a.key(e.KeyID); key != nil && key.record.Active() {
			key.record.RevokedAt = e.At
		}
	case *Leased:
		a.applyLease(e)
	case *Returned:
		a.applyReturn(e)
	case *Suspended:
		a.record.SuspendedAt, a.record.Reason = e.At, e.Reason
	case *Restored:
		a.record.SuspendedAt, a.record.Reason = time.Time{}, ""
	case *QuotaSet:
		a.record.Quota = e.Quota
	default:
		panic(fmt.Sprintf("engine: no rule applies an event of type %T", event))
	}
}

// addKey keeps the list short: the oldest revoked keys leave it; their digests are unknown from then on, which refuses them too.
func (a *Account) addKey(key KeyRecord) {
	a.keys = append(a.keys, accountKey{record: key})
	for len(a.keys) > keysKept {
		at := slices.IndexFunc(a.keys, func(k accountKey) bool { return !k.record.Active() })
		if at < 0 {
			return
		}
		a.keys = slices.Delete(a.keys, at, at+1)
	}
}

// key is the key with an id, nil when there is none.
func (a *Account) key(id string) *accountKey {
	for i := range a.keys {
		if a.keys[i].record.ID == id {
			return &a.keys[i]
		}
	}
	return nil
}

// byDigest is the key with a digest, nil when there is none; the newest keys come first, they are the ones in use.
func (a *Account) byDigest(digest Digest) *accountKey {
	for i := len(a.keys) - 1; i >= 0; i-- {
		if subtle.ConstantTimeCompare(a.keys[i].record.Digest[:], digest[:]) == 1 {
			return &a.keys[i]
		}
	}
	return nil
}

// setKeyUse notes in what the log knows when a key was last used.
func (a *Account) setKeyUse(id string, at time.Time) {
	if key := a.key(id); key != nil && at.After(key.record.LastUsed) {
		key.record.LastUsed = at
	}
}

// Key is the record of a digest; false when the account has no such key, revoked ones included.
func (a *Account) Key(digest Digest) (KeyRecord, bool) {
	if key := a.byDigest(digest); key != nil {
		return key.record, true
	}
	return KeyRecord{}, false
}

// CreateKey decides a new key: at most two are active at once, those on their way into the log included (K5).
func (a *Account) CreateKey(key KeyRecord) (Event, error) {
	active := a.keysPending
	for i := range a.keys {
		if a.keys[i].record.Active() {
			active++
		}
	}
	if active >= KeysActiveMax {
		return nil, &engine.Error{Code: engine.CodeKeyLimitReached, Message: "the account has two active keys; revoke one first"}
	}
	a.keysPending++
	key.CreatedAt = plainUTC(key.CreatedAt)
	return &KeyCreated{a.record.ID, key}, nil
}

// SetQuota decides limits of the account's own; zero fields are the node's. A negative one would refuse every request, or count
// backwards: suspend an account that must not ask.
func (a *Account) SetQuota(allowance Quota, by string, now time.Time) (Event, error) {
	if allowance.Day < 0 || allowance.Minute < 0 {
		return nil, &engine.Error{
			Code:    engine.CodeInvalidParameters,
			Message: fmt.Sprintf("limits of %d a day and %d a minute: a limit is 0, the node's own, or more", allowance.Day, allowance.Minute),
		}
	}
	return &QuotaSet{a.record.ID, allowance, plainUTC(now), by}, nil
}

// AbortKey says that a key decided did not become durable and never will.
func (a *Account) AbortKey() { a.keysPending = max(0, a.keysPending-1) }

// RevokeKey decides the end of a key. A key that is revoked already gives no event and no error: revoking is repeatable (K1).
func (a *Account) RevokeKey(id, by string, now time.Time) (Event, error) {
	switch key := a.key(id); {
	case key == nil:
		return nil, &engine.Error{Code: engine.CodeNotFound, Message: "the account has no key with this id"}
	case key.record.Active():
		return &KeyRevoked{a.record.ID, id, plainUTC(now), by}, nil
	}
	return nil, nil
}

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
	KeysActiveMax = 2
	KeyNameMax    = 80
	keysMax       = 50 // with revoked ones
)

// KeyRecord is what is stored and listed of a key, which is not the key itself.
type KeyRecord struct {
	ID        string
	Name      string
	Hint      string // last four characters
	CreatedAt time.Time
	LastUsed  time.Time // zero = never; written with the next lease, so a crash may lose the newest use
	Digest    Digest
	RevokedAt time.Time // zero while active
}

// Active reports that the key is not revoked.
func (k *KeyRecord) Active() bool { return k.RevokedAt.IsZero() }

// Record is the stored data of an account.
type Record struct {
	SuspendedAt time.Time // zero = not suspended
	Quota       Quota     // zero fields = the node's default
	ID          uint64
	Email       EmailID
	CreatedAt   time.Time
	Keys        []KeyRecord // oldest first
	Reason      string      // of the suspension
}

// Account is the state of one account. Only its owner may call its methods. Danger: what is left of its leases is
// neither in an event nor in State; to drop an Account without Return or SaveEvicted forfeits it.
//
// The fields that Admit reads are adjacent, and one key and one day, which are enough for most accounts, are in the
// struct itself: to fetch an account from memory is most of the cost of its first request. An Account must not be
// copied.
type Account struct {
	node         engine.NodeID
	leasePending bool          // a lease is being written
	leaseAskedAt time.Duration // steady time of the last NextLease
	keys         []accountKey  // oldest first
	days         dayCounts
	minute       minuteWindow
	nodeLeases   []LeaseState // in a cluster, by node
	record       Record       // without keys

	leases      []LeaseState // without a cluster, by time
	keysPending int          // keys that are being written
	tokenLease  tokenLease   // in a cluster

	firstDays [1]dayCount   // memory of days
	firstKeys [1]accountKey // memory of keys
}

type accountKey struct {
	record KeyRecord
	used   time.Time // newer than record.LastUsed until the next lease is written
}

// Event is a change of one account.
type Event interface {
	AccountID() uint64
}

// The events of accounts. By is "owner" or the name of an operator.
type (
	// Created makes an account, at the first login.
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
	// KeyRevoked revokes a key.
	KeyRevoked struct {
		Account uint64
		KeyID   string
		At      time.Time
		By      string
	}
	// Leased takes requests from a day's quota. After a crash they count as spent.
	Leased struct {
		Account        uint64
		Day            engine.Date
		Count          int
		Refunded       int           // requests that were leased before, admitted and refunded, and may now be spent again
		Unspent        int           // requests of any day that were leased before and not spent
		Steady         time.Duration // ClockReading.Steady
		KeyID          string        // of the request that needed it
		At             time.Time
		Node           engine.NodeID // that may spend it
		RecentAdmitted int           // in a cluster: admitted by the node in the last minute
	}
	// Returned gives back what is not spent, at a stop, and in a cluster when a node has no requests of the account.
	Returned struct {
		Account        uint64
		Day            engine.Date
		Unspent        int
		RecentAdmitted int // admitted in the last minute
		Steady         time.Duration
		Uses           []KeyUse      // since the last lease
		Node           engine.NodeID // that had leased it
	}
	// Suspended disables all keys of an account.
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
	// QuotaSet gives an account its own quota; zero fields are the node's default.
	QuotaSet struct {
		Account uint64
		Quota   Quota
		At      time.Time
		By      string
	}
)

// AccountID returns the account.
func (e *Created) AccountID() uint64 { return e.Account }

// AccountID returns the account.
func (e *KeyCreated) AccountID() uint64 { return e.Account }

// AccountID returns the account.
func (e *KeyRevoked) AccountID() uint64 { return e.Account }

// AccountID returns the account.
func (e *Leased) AccountID() uint64 { return e.Account }

// AccountID returns the account.
func (e *Returned) AccountID() uint64 { return e.Account }

// AccountID returns the account.
func (e *Suspended) AccountID() uint64 { return e.Account }

// AccountID returns the account.
func (e *Restored) AccountID() uint64 { return e.Account }

// AccountID returns the account.
func (e *QuotaSet) AccountID() uint64 { return e.Account }

// New returns an account to which Created has yet to be applied.
func New(id uint64) *Account {
	a := new(Account)
	a.Load(&State{Record: Record{ID: id}})
	return a
}

// Record returns a copy of the account's data, with the newest use of each key.
func (a *Account) Record() Record {
	record := a.durableRecord()
	for i := range record.Keys {
		if used := a.keys[i].used; used.After(record.Keys[i].LastUsed) {
			record.Keys[i].LastUsed = used
		}
	}
	return record
}

// durableRecord returns a copy of what the log has.
func (a *Account) durableRecord() Record {
	record := a.record
	for i := range a.keys {
		record.Keys = append(record.Keys, a.keys[i].record)
	}
	return record
}

// Apply changes the account by a durable event that this process decided, or by any event in a replay.
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

// addKey drops the oldest revoked keys beyond keysMax. A dropped key is refused as unknown.
func (a *Account) addKey(key KeyRecord) {
	a.keys = append(a.keys, accountKey{record: key})
	for len(a.keys) > keysMax {
		at := slices.IndexFunc(a.keys, func(k accountKey) bool { return !k.record.Active() })
		if at < 0 {
			return
		}
		a.keys = slices.Delete(a.keys, at, at+1)
	}
}

// key returns the key with an id, nil when there is none.
func (a *Account) key(id string) *accountKey {
	for i := range a.keys {
		if a.keys[i].record.ID == id {
			return &a.keys[i]
		}
	}
	return nil
}

// byDigest returns the key with a digest, nil when there is none. The newest keys, which are those in use, come first.
func (a *Account) byDigest(digest Digest) *accountKey {
	for i := len(a.keys) - 1; i >= 0; i-- {
		if subtle.ConstantTimeCompare(a.keys[i].record.Digest[:], digest[:]) == 1 {
			return &a.keys[i]
		}
	}
	return nil
}

func (a *Account) setKeyUses(uses ...KeyUse) {
	for _, use := range uses {
		if key := a.key(use.KeyID); key != nil && use.At.After(key.record.LastUsed) {
			key.record.LastUsed = use.At
		}
	}
}

// EachKey calls visit with the digest of each key, also of revoked ones.
func (a *Account) EachKey(visit func(Digest)) {
	for i := range a.keys {
		visit(a.keys[i].record.Digest)
	}
}

// Key returns the record of the key with a digest, also of a revoked one; false when there is none.
func (a *Account) Key(digest Digest) (KeyRecord, bool) {
	if key := a.byDigest(digest); key != nil {
		return key.record, true
	}
	return KeyRecord{}, false
}

// CreateKey decides to add a key. Keys that are being written count towards the limit. The outcome must be reported by
// Apply or AbortKey.
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

// AbortKey reports that the event of CreateKey will not become durable.
func (a *Account) AbortKey() { a.keysPending = max(0, a.keysPending-1) }

// RevokeKey decides to revoke a key. For a key that is revoked already it returns neither an event nor an error.
func (a *Account) RevokeKey(id, by string, now time.Time) (Event, error) {
	switch key := a.key(id); {
	case key == nil:
		return nil, &engine.Error{Code: engine.CodeNotFound, Message: "the account has no key with this id"}
	case key.record.Active():
		return &KeyRevoked{a.record.ID, id, plainUTC(now), by}, nil
	}
	return nil, nil
}

// SetQuota decides to give the account its own quota; zero fields are the node's default. To refuse all requests of an
// account, suspend it.
func (a *Account) SetQuota(quota Quota, by string, now time.Time) (Event, error) {
	if quota.Day < 0 || quota.Minute < 0 {
		return nil, &engine.Error{
			Code:    engine.CodeInvalidParameters,
			Message: fmt.Sprintf("limits of %d a day and %d a minute: a limit is 0, the node's own, or more", quota.Day, quota.Minute),
		}
	}
	return &QuotaSet{a.record.ID, quota, plainUTC(now), by}, nil
}

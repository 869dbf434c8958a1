package account

import (
	"fmt"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// Limits of an account.
const (
	KeysActiveMax = 2
	KeyNameMax    = 80
	keysMax       = 50 // including revoked keys
)

// KeyRecord is the data of an API key in the log and in lists. It does not contain the key itself.
type KeyRecord struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Hint      string    `json:"hint"` // last four characters
	CreatedAt time.Time `json:"createdAt"`
	RevokedAt time.Time `json:"revokedAt,omitzero"` // zero while active
	// LastUsed is zero for an unused key. The log contains it only with the next event Leased, so a crash can lose it.
	LastUsed time.Time `json:"lastUsedAt,omitzero"`
	Digest   Digest    `json:"-"`
}

// Active reports whether the key is not revoked.
func (k *KeyRecord) Active() bool { return k.RevokedAt.IsZero() }

// Record is the stored data of an account.
type Record struct {
	SuspendedAt time.Time // zero = not suspended
	Quota       Quota     // a zero field means the node's default (QuotaPolicy)
	ID          uint64
	Email       EmailID
	CreatedAt   time.Time
	Keys        []KeyRecord // oldest first
	Reason      string      // reason of the suspension
}

// Account is the state of one account. Its methods must not be called concurrently. Danger: before an Account is
// dropped, its unspent leased requests must be given back with Return, because State counts them as spent.
//
// A request is slow mainly because its account is not in the processor's cache. Therefore the fields that Admit uses
// are adjacent, from firstKeys to special. The struct contains arrays for one key and two requests, which is enough for
// most accounts. An Account must not be copied, because its slices refer to these arrays.
type Account struct {
	firstKeys     [1]accountKey // backing array of keys
	keys          accountKeys
	days          dayCounts
	minute        minuteWindow
	firstAdmitted [2]time.Duration // backing array of minute
	node          engine.NodeID
	asking        bool       // a quota lease or its return is being written to the log
	nodeLeases    nodeLeases // in a cluster
	id            uint64
	email         EmailID
	createdAt     instant
	special       *special // nil for most accounts

	askedAt       time.Duration // monotonic time (ClockReading.Monotonic) of the newest ask: from NextLease or Return
	lastLeaseSize int           // size of the newest lease from NextLease; 0 = none yet
	single        LeaseState    // without a cluster; zero = none
	keysPending   int           // keys being written to the log
	ownTokens     *tokenLease   // see tokens
}

// special is rare data: a suspension, and a quota of the account's own.
type special struct {
	suspendedAt time.Time
	reason      string
	quota       Quota
}

// Event is a change of one account.
type Event interface{ accountID() uint64 }

// IDOf returns the account of an event.
func IDOf(event Event) uint64 { return event.accountID() }

// Events of accounts. By names the cause of an event: "owner" (of the account) or an operator.
type (
	// Created creates an account, at the first login.
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
	// Leased is a quota lease: it takes Count requests from a day's quota, to be spent without writing to the log.
	// After a crash they count as spent.
	Leased struct {
		Account        uint64
		Day            engine.Date
		Count          int
		Refunded       int           // refunded requests of earlier leases; can be spent again now
		Unspent        int           // unspent requests of earlier leases
		Monotonic      time.Duration // monotonic time of the decision (ClockReading.Monotonic)
		KeyID          string        // id of the key in the request that needed the lease
		At             time.Time
		Node           engine.NodeID // the only node that may spend the lease
		RecentAdmitted int           // requests that the node admitted in the last minute; 0 in some old logs of one node
	}
	// Returned gives unspent leased requests back to the quota when a node stops. A node of a cluster also returns them
	// after a while without requests.
	Returned struct {
		Account        uint64
		Day            engine.Date
		Unspent        int
		Granted        int // requests of the grant of the day (DayGranted) that no event of the account includes
		RecentAdmitted int // requests admitted in the last minute
		Monotonic      time.Duration
		Uses           []KeyUse      // newest uses of keys since the last lease
		Node           engine.NodeID // the node with the lease
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
	// KeyUse is the time of the newest use of a key.
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

func (e *Created) accountID() uint64    { return e.Account }
func (e *KeyCreated) accountID() uint64 { return e.Account }
func (e *KeyRevoked) accountID() uint64 { return e.Account }
func (e *Leased) accountID() uint64     { return e.Account }
func (e *Returned) accountID() uint64   { return e.Account }
func (e *Suspended) accountID() uint64  { return e.Account }
func (e *Restored) accountID() uint64   { return e.Account }
func (e *QuotaSet) accountID() uint64   { return e.Account }

// New returns an empty account. Apply its Created event next.
func New(id uint64) *Account {
	return Restore(State{Record: Record{ID: id}})
}

// Record returns a copy of the account's data, with the newest use of each key.
func (a *Account) Record() Record {
	record := a.durableRecord()
	for i := range record.Keys {
		record.Keys[i].LastUsed = max(a.keys[i].used, a.keys[i].lastUsed).time()
	}
	return record
}

// durableRecord returns a copy of the account's data in the log, without newer uses of keys.
func (a *Account) durableRecord() Record {
	record := Record{ID: a.id, Email: a.email, CreatedAt: a.createdAt.time()}
	if s := a.special; s != nil {
		record.SuspendedAt, record.Reason, record.Quota = s.suspendedAt, s.reason, s.quota
	}
	for i := range a.keys {
		record.Keys = append(record.Keys, a.keys[i].record())
	}
	return record
}

func (a *Account) suspended() bool { return a.special != nil && !a.special.suspendedAt.IsZero() }

// setSpecial changes the rare data.
func (a *Account) setSpecial(change func(*special)) {
	var s special
	if a.special != nil {
		s = *a.special
	}
	if change(&s); s == (special{}) {
		a.special = nil
	} else {
		a.special = &s
	}
}

// Apply changes the account by an event of the log. now is the time of its arrival; in a replay now.Monotonic is the
// newest monotonic time in the log so far. A lease that this process does not wait for counts as spent: it is another
// node's, or was aborted (Abort).
func (a *Account) Apply(event Event, now ClockReading) {
	switch e := event.(type) {
	case *Created:
		a.email, a.createdAt = e.Email, instantOf(e.At)
	case *KeyCreated:
		a.keys.add(e.Key)
	case *KeyRevoked:
		if key := a.keys.byID(e.KeyID); key != nil && key.active() {
			key.revokedAt = instantOf(e.At)
		}
	case *Leased:
		a.applyLease(e, now)
	case *Returned:
		a.applyReturn(e, now)
	case *Suspended:
		a.setSpecial(func(s *special) { s.suspendedAt, s.reason = e.At, e.Reason })
	case *Restored:
		a.setSpecial(func(s *special) { s.suspendedAt, s.reason = time.Time{}, "" })
	case *QuotaSet:
		a.setSpecial(func(s *special) { s.quota = e.Quota })
	default:
		panic(fmt.Sprintf("engine: no rule applies an event of type %T", event))
	}
}

// EachKey calls visit with the digest of each key, including revoked ones.
func (a *Account) EachKey(visit func(Digest)) {
	for i := range a.keys {
		visit(a.keys[i].digest)
	}
}

// CreateKey returns the event that adds a key. Keys being written to the log count towards KeysActiveMax. The caller
// must call Written when the write of the event has ended. A suspended account gets no new keys.
func (a *Account) CreateKey(key KeyRecord) (Event, error) {
	if a.suspended() {
		return nil, &engine.Error{Code: engine.CodeAccountSuspended, Message: "the account is suspended and gets no new keys"}
	}
	active := a.keysPending
	for i := range a.keys {
		if a.keys[i].active() {
			active++
		}
	}
	if active >= KeysActiveMax {
		return nil, &engine.Error{Code: engine.CodeKeyLimitReached, Message: "the account has two active keys; revoke one first"}
	}
	a.keysPending++
	key.CreatedAt = engine.PlainUTC(key.CreatedAt)
	return &KeyCreated{a.id, key}, nil
}

// Written must be called when the write of a change has ended: before Apply, or if the event will not become durable.
func (a *Account) Written(event Event) {
	if _, created := event.(*KeyCreated); created {
		a.keysPending = max(0, a.keysPending-1)
	}
}

// RevokeKey returns the event that revokes a key. If the key is already revoked, both results are nil.
func (a *Account) RevokeKey(id, by string, now time.Time) (Event, error) {
	switch key := a.keys.byID(id); {
	case key == nil:
		return nil, &engine.Error{Code: engine.CodeNotFound, Message: "the account has no key with this id"}
	case key.active():
		return &KeyRevoked{a.id, id, engine.PlainUTC(now), by}, nil
	}
	return nil, nil
}

// accountKey is a KeyRecord in half of its memory.
type accountKey struct {
	id, name, hint       string
	digest               Digest
	createdAt, revokedAt instant
	lastUsed             instant // as in the log
	used                 instant // newest use; copied to lastUsed with the next lease
}

func keyOf(k *KeyRecord) accountKey {
	return accountKey{k.ID, k.Name, k.Hint, k.Digest, instantOf(k.CreatedAt), instantOf(k.RevokedAt), instantOf(k.LastUsed), 0}
}

func (k *accountKey) record() KeyRecord {
	return KeyRecord{k.id, k.name, k.hint, k.createdAt.time(), k.revokedAt.time(), k.lastUsed.time(), k.digest}
}

func (k *accountKey) active() bool { return k.revokedAt == 0 }

// instant is a time in nanoseconds since 1970, or 0 for the zero time.
type instant int64

func instantOf(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	return instant(t.UnixNano())
}

func (i instant) time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(i)).UTC()
}

// accountKeys are the keys of an account, oldest first.
type accountKeys []accountKey

// add adds a key. Beyond keysMax it drops the oldest revoked key, which is then denied as unknown.
func (k *accountKeys) add(key KeyRecord) {
	*k = append(*k, keyOf(&key))
	for len(*k) > keysMax {
		i := slices.IndexFunc(*k, func(key accountKey) bool { return !key.active() })
		if i < 0 {
			return
		}
		*k = slices.Delete(*k, i, i+1)
	}
}

// byID returns the key with an id, or nil.
func (k accountKeys) byID(id string) *accountKey {
	for i := range k {
		if k[i].id == id {
			return &k[i]
		}
	}
	return nil
}

// byDigest returns the key with a digest, or nil. It searches newest keys first, because they are in use.
func (k accountKeys) byDigest(digest Digest) *accountKey {
	for i := len(k) - 1; i >= 0; i-- {
		if k[i].digest.equal(&digest) {
			return &k[i]
		}
	}
	return nil
}

// setUses sets uses from the log.
func (k accountKeys) setUses(uses ...KeyUse) {
	for _, use := range uses {
		if key := k.byID(use.KeyID); key != nil {
			key.lastUsed = max(key.lastUsed, instantOf(use.At))
		}
	}
}

// newUses returns the uses missing in the log.
func (k accountKeys) newUses() (uses []KeyUse) {
	for i := range k {
		if key := &k[i]; key.used > key.lastUsed {
			uses = append(uses, KeyUse{key.id, key.used.time()})
		}
	}
	return uses
}

// State is the part of an account that is in the log, in the form of a snapshot. It does not tell how many leased
// requests were spent; after a restart all count as spent.
type State struct {
	Record Record
	Days   []DayState // only the newest counts
	Leases []LeaseState
}

// DayState is the number of leased requests of one day.
type DayState struct {
	Day    engine.Date
	Leased int
}

// LeaseState gives an upper bound of the requests that a node has admitted: RecentAdmitted requests in the minute
// before its newest lease (reserved part of a daily quota) or return, and at most Count requests from then on. With
// this bound no minute exceeds its limit, even after a crash.
//
// In a cluster Monotonic is the monotonic time of this process (ClockReading.Monotonic) at which the event arrived,
// because nodes have different clocks. In a replay it is the newest monotonic time in the log, until Resume sets it.
// Without a cluster it is the monotonic time of the decision.
type LeaseState struct {
	Monotonic      time.Duration
	Unspent        int // only in snapshots of a node without a cluster
	Count          int
	Node           engine.NodeID
	RecentAdmitted int
	asked          time.Duration // of the node's newest lease or return, on that node's clock; not in a snapshot
}

// singleStates returns the LeaseStates of a snapshot for a node without a cluster. There RecentAdmitted is a LeaseState
// of its own.
func (s LeaseState) singleStates() (states []LeaseState) {
	if s.RecentAdmitted > 0 {
		states = append(states, LeaseState{Monotonic: s.Monotonic, Count: s.RecentAdmitted})
	}
	if s.RecentAdmitted > 0 || s.Count > 0 {
		states = append(states, LeaseState{Monotonic: s.Monotonic, Count: s.Count})
	}
	return states
}

// afterSingle returns the state after the next LeaseState of a snapshot for a node without a cluster. Earlier versions
// wrote one for each lease of the last minute. Unspent is the number of unspent requests of earlier leases.
func (s LeaseState) afterSingle(next LeaseState) LeaseState {
	count := next.Unspent + next.Count
	return LeaseState{Monotonic: next.Monotonic, RecentAdmitted: s.admittedBefore(next.Monotonic, next.Unspent), Count: count}
}

// admittedBefore returns an upper bound of the requests that a node without a cluster has admitted in the minute before
// its next lease, when so many requests of its leases were unspent.
func (s LeaseState) admittedBefore(next time.Duration, unspent int) int {
	return s.admittedSingle(next) - min(unspent, s.Count)
}

// admittedSingle returns an upper bound of the requests that a node without a cluster has admitted in the last minute.
// A lease may be spent at any time.
func (s LeaseState) admittedSingle(now time.Duration) int {
	if now-s.Monotonic < MinuteSpan {
		return s.RecentAdmitted + s.Count
	}
	return s.Count
}

// State returns the state for a snapshot.
func (a *Account) State() State {
	s := State{Record: a.durableRecord(), Leases: a.single.singleStates()}
	for _, l := range a.nodeLeases {
		l.asked = 0
		s.Leases = append(s.Leases, l)
	}
	if a.days.logged.Day != 0 {
		s.Days = []DayState{a.days.logged}
	}
	return s
}

// Restore returns the account of a snapshot. Then apply the newer events and call Resume.
func Restore(state State) *Account {
	a := new(Account)
	r := &state.Record
	a.id, a.email, a.createdAt = r.ID, r.Email, instantOf(r.CreatedAt)
	a.setSpecial(func(s *special) { *s = special{r.SuspendedAt, r.Reason, r.Quota} })
	a.keys, a.minute.admitted = a.firstKeys[:0], a.firstAdmitted[:0]
	for i := range r.Keys {
		a.keys = append(a.keys, keyOf(&r.Keys[i]))
	}
	for _, day := range state.Days { // earlier versions wrote several
		a.days.log(day.Day, day.Leased)
	}
	for _, lease := range state.Leases {
		if lease.Node == 0 {
			a.single = a.single.afterSingle(lease)
		} else {
			a.nodeLeases = append(a.nodeLeases, lease)
		}
	}
	return a
}

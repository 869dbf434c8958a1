package accounts

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Errors for a missing or unacceptable API key. They are shared values: do not modify them.
var (
	errMissingKey = &engine.Error{Code: engine.CodeMissingKey, Message: "a key is required: make a free one at /account and send it as Authorization: Bearer KEY"}
	errInvalidKey = &engine.Error{Code: engine.CodeInvalidKey, Message: "the key is not valid: check that it is complete, or make a new one at /account"}
	errRevokedKey = &engine.Error{Code: engine.CodeRevokedKey, Message: "the key is revoked: make a new one at /account"}
	errSuspended  = &engine.Error{Code: engine.CodeAccountSuspended, Message: "the account of the key is suspended"}
)

// LimitsEnforced implements account.Admitter.
func (t *Accounts) LimitsEnforced() bool { return !t.config.LimitsOff }

// KeyPolicy implements account.Admitter. During the replay it returns the zero value: no API keys are required.
func (t *Accounts) KeyPolicy() account.KeyPolicy { return *t.keyPolicy.Load() }

// Admit implements account.Admitter. It allocates memory only for a new quota lease. With Config.LimitsOff it counts no
// requests, and checks API keys only if they are required.
func (t *Accounts) Admit(c account.Caller) (account.Admission, error) {
	if err := t.config.Available(); err != nil {
		return account.Admission{}, err
	}
	required := t.keysRequired()
	switch {
	case c.HasKey && !t.config.LimitsOff:
		admission, err := t.admitKey(c.Key)
		keyErr := keyError(admission.DenyCode)
		switch {
		case err != nil:
			return account.Admission{}, err
		case keyErr == nil:
			return admission, nil
		case required:
			return account.Admission{}, keyErr
		}
	case required && c.HasKey:
		if _, err := t.KeyUsage(c.Key); err != nil {
			return account.Admission{}, err
		}
	case required && c.HasMalformedKey:
		return account.Admission{}, errInvalidKey
	case required:
		return account.Admission{}, errMissingKey
	}
	if t.config.LimitsOff {
		return account.Admission{QuotaResult: account.QuotaResult{Admitted: true}, Address: c.Address}, nil
	}
	return t.requestPools.anonymous.Ask(t.anonymousOf(c.Address), c.Address, AskTimeout)
}

// keysRequired reports whether every request needs an API key now. It reads the clock only if an operator has announced
// the date from which this holds.
func (t *Accounts) keysRequired() bool {
	policy := t.keyPolicy.Load()
	return !policy.RequiredAt.IsZero() && policy.Required(t.config.Clock())
}

// admitKey asks the actor of the key's account. In a cluster it first waits at most leaseWaitMax. After this timeout it
// returns errLeaseUnavailable if the cluster has no majority, and the timeout error if a write of the journal is still
// in progress. Otherwise only this process was slow, so it asks again.
func (t *Accounts) admitKey(key account.Digest) (account.Admission, error) {
	actor := t.keys.lookup(key)
	if actor == nil {
		return account.Admission{QuotaResult: account.QuotaResult{DenyCode: engine.CodeInvalidKey}}, nil
	}
	if t.Node == 0 {
		return t.requestPools.admissions.Ask(actor, key, AskTimeout)
	}
	admission, err := t.requestPools.admissions.Ask(actor, key, leaseWaitMax)
	switch {
	case !errors.Is(err, mailbox.ErrExpired):
		return admission, err
	case t.Majority.Lost():
		return account.Admission{}, errLeaseUnavailable
	case t.journalHealth.Waits() || t.asking.Load() > 0:
		return account.Admission{}, err
	}
	return t.requestPools.admissions.Ask(actor, key, AskTimeout)
}

// errLeaseUnavailable rejects an API request while the account has no quota lease and the cluster cannot give one.
var errLeaseUnavailable = &engine.Error{
	Code: engine.CodeNoMajority, RetryAfter: time.Second, Cause: commitlog.ErrNoMajority,
	Message: "the quota of this key can't be counted now, because too few nodes of the service reach each other; try again in a second or ask " +
		"another node",
}

// keyError returns the error for a code that rejects the key, and nil for other codes.
func keyError(code engine.Code) error {
	switch code {
	case engine.CodeInvalidKey:
		return errInvalidKey
	case engine.CodeRevokedKey:
		return errRevokedKey
	case engine.CodeAccountSuspended:
		return errSuspended
	}
	return nil
}

// Refund implements account.Admitter. If the mailbox of the actor is full, the request stays counted.
func (t *Accounts) Refund(a account.Admission) {
	if !a.Admitted || t.config.LimitsOff || t.config.Available() != nil {
		return
	}
	to := t.shardOf(a.Account)
	if a.Account == 0 {
		to = t.anonymousOf(a.Address)
	}
	_, _ = t.requestPools.refunds.Ask(to, a, AskTimeout)
}

// KeyUsage implements account.Service.
func (t *Accounts) KeyUsage(key account.Digest) (account.QuotaResult, error) {
	if err := t.config.Available(); err != nil {
		return account.QuotaResult{}, err
	}
	actor := t.keys.lookup(key)
	if actor == nil {
		return account.QuotaResult{}, errInvalidKey
	}
	return t.requestPools.usages.Ask(actor, key, AskTimeout)
}

// session returns the account ID of an open session.
func (t *Accounts) session(token account.Digest) (uint64, error) {
	if err := t.config.Available(); err != nil {
		return 0, err
	}
	return t.requestPools.sessions.Ask(t.Registrar, token, AskTimeout)
}

// keyIndex maps the fingerprint of an API key (first bytes of its digest) to the actor of its account. A result is only
// a hint: the account must compare the whole digest, and check that the key is not revoked. All methods may be called
// concurrently.
type keyIndex struct {
	mu     sync.RWMutex
	actors map[uint64]*mailbox.Ref
}

func newKeyIndex() *keyIndex { return &keyIndex{actors: map[uint64]*mailbox.Ref{}} }

func fingerprintOf(digest account.Digest) uint64 { return binary.LittleEndian.Uint64(digest[:]) }

// lookup returns the actor of the account that may own the key, or nil.
func (x *keyIndex) lookup(digest account.Digest) *mailbox.Ref {
	x.mu.RLock()
	actor := x.actors[fingerprintOf(digest)]
	x.mu.RUnlock()
	return actor
}

// add adds a durable key. It returns false if another account has a key with the same fingerprint.
func (x *keyIndex) add(digest account.Digest, actor *mailbox.Ref) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	fingerprint := fingerprintOf(digest)
	if owner := x.actors[fingerprint]; owner != nil && owner != actor {
		return false
	}
	x.actors[fingerprint] = actor
	return true
}

// AnonymousTables is the number of AnonymousActors. A hash assigns each IP address to one of them.
const AnonymousTables = 16

type anonymousAdmission = mailbox.Request[netip.Addr, account.Admission]

// AnonymousActor counts the requests of clients without an API key, by IP address. The counts are in memory only.
type AnonymousActor struct {
	parent *Accounts
	table  *account.AnonymousTable
}

// Receive implements mailbox.Actor.
func (t *AnonymousActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *anonymousAdmission:
		t.admit(m)
	case *Refund:
		t.table.Refund(m.Query.Address, m.Query.At)
		m.Reply(struct{}{}, nil)
	}
}

func (t *AnonymousActor) admit(m *anonymousAdmission) {
	now, address := t.parent.clock.Now(), m.Query
	result := t.table.Admit(address, now, t.parent.config.QuotaPolicy.DefaultQuota)
	if !m.Reply(account.Admission{QuotaResult: result, Address: address, At: now}, nil) && result.Admitted {
		t.table.Refund(address, now)
	}
}

// FailsNode implements mailbox.Actor. A panic is not fatal: at most, one count is wrong by one.
func (t *AnonymousActor) FailsNode(mailbox.Message) bool { return false }

// RejectAll implements mailbox.Actor.
func (t *AnonymousActor) RejectAll(*engine.Error) {}

// startAnonymous starts the AnonymousActors.
func (t *Accounts) startAnonymous(actors *mailbox.System) error {
	rowSeed := maphash.MakeSeed() // differs from anonymousSeed, so that one table's addresses spread over all its rows
	for i := range AnonymousTables {
		table := account.NewAnonymousTable((t.config.AnonymousClientsMax+AnonymousTables-1)/AnonymousTables, func(key uint64) uint64 {
			return maphash.Comparable(rowSeed, key)
		})
		ref, err := actors.Spawn("anonymous-"+strconv.Itoa(i), &t.Kinds.Anonymous, &AnonymousActor{t, table})
		if err != nil {
			return err
		}
		t.anonymous = append(t.anonymous, ref)
	}
	return nil
}

// anonymousOf returns the actor that counts an IP address. All addresses of one network (account.WidestPrefix) share an
// actor.
func (t *Accounts) anonymousOf(address netip.Addr) *mailbox.Ref {
	client := account.WidestPrefix(address).Addr().As16()
	return t.anonymous[maphash.Comparable(t.anonymousSeed, client)%uint64(len(t.anonymous))]
}

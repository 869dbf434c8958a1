package account

import (
	"net/netip"
	"time"
)

// Caller is the sender of a request: the owner of a well-formed key, or an anonymous client.
type Caller struct {
	Key             Digest
	HasKey          bool // Key is a digest that ParseKey returned
	HasMalformedKey bool // a key was sent that ParseKey refused
	Address         netip.Addr
}

// Admission is the answer to a request for admission, with what Refund needs.
type Admission struct {
	QuotaResult
	Account uint64 // that was charged; 0 = the address
	Address netip.Addr
	At      ClockReading
}

// Admitter admits requests. Errors are *engine.Error: the codes of status 401 after keys are required, CodeOverloaded,
// CodeReadOnly, CodeDataUnavailable while the log is replayed. An Admission that is not Admitted is status 429. Before
// keys are required, a caller with a malformed, unknown or revoked key, or one of a suspended account, counts as
// anonymous.
type Admitter interface {
	Admit(Caller) (Admission, error)
	Refund(Admission)
	// LimitsEnforced is false when limits are off: then there are no admissions and no headers.
	LimitsEnforced() bool
	// KeyPolicy returns the policy in force, without waiting.
	KeyPolicy() KeyPolicy
}

// Service lets the owner of an e-mail address log in and manage keys. Tokens are digests of session tokens. A change is
// on disk when its method returns without error. Errors are *engine.Error.
type Service interface {
	RequestCode(email Email, from netip.Addr) error
	OpenSession(email Email, code string, from netip.Addr) (token Secret, expires time.Time, err error)
	CloseSession(token Digest) error
	Keys(token Digest) ([]KeyRecord, error)
	CreateKey(token Digest, name string) (KeyRecord, Secret, error)
	RevokeKey(token Digest, id string) error
	// Usage returns both windows of a session's account. It is not charged.
	Usage(token Digest) (QuotaResult, error)
	// KeyUsage returns both windows of a key's account. It is not charged.
	KeyUsage(key Digest) (QuotaResult, error)
}

// Operator is what an operator may do to accounts; by is the operator's name, for the log.
type Operator interface {
	ListAccounts() ([]Summary, error)
	ShowAccount(id uint64) (Record, QuotaResult, error)
	SuspendAccount(id uint64, reason, by string) error
	RestoreAccount(id uint64, by string) error
	SetAccountQuota(id uint64, quota Quota, by string) error
	Announce(requiredAt time.Time, by string) (KeyPolicy, error)
	WithdrawAnnouncement(by string) error
}

// Summary is an account in a list.
type Summary struct {
	ID         uint64
	Email      EmailID
	CreatedAt  time.Time
	ActiveKeys int
	Suspended  bool
	Quota      Quota // zero fields = the node's default
	SpentToday int
}

// LoginMail is a login code on its way to an address.
type LoginMail struct {
	To      Email
	Code    Secret
	Expires time.Time
}

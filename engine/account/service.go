package account

import (
	"net/netip"
	"time"
)

// Caller is in whose name a request is made: a well-formed key, or the client's address alone.
type Caller struct {
	Key             Digest
	HasKey          bool // Key is the digest of a key that ReadKey accepted
	HasMalformedKey bool // a key was sent that ReadKey refused; once keys are required that is CodeInvalidKey, before it is nobody
	Address         netip.Addr
}

// Admission is an admission, or its refusal, with what Refund needs.
type Admission struct {
	QuotaResult
	Account uint64 // who was charged; 0 = the address
	Address netip.Addr
	At      ClockReading
}

// Admitter admits requests. Errors are *engine.Error: 401 codes once keys are required (K6), CodeOverloaded, CodeReadOnly, CodeDataUnavailable while
// the log replays. A grant that is not Admitted is a 429. Before keys are required a key that is unknown, revoked or of a suspended
// account is a caller without a key.
type Admitter interface {
	Admit(Caller) (Admission, error)
	Refund(Admission)
	// LimitsEnforced is false with limits off: no admission, no headers (L10).
	LimitsEnforced() bool
	// KeyPolicy is the announcement in force; reading it costs nothing.
	KeyPolicy() KeyPolicy
}

// Service is the way from an e-mail address to a limited, counted, revocable key (K1). Tokens are the digests of sessions. Everything
// that a method without error promises is on disk. Errors are *engine.Error.
type Service interface {
	RequestCode(email Email, from netip.Addr) error
	OpenSession(email Email, code string, from netip.Addr) (token Secret, expires time.Time, err error)
	CloseSession(token Digest) error
	Keys(token Digest) ([]KeyRecord, error)
	CreateKey(token Digest, name string) (KeyRecord, Secret, error)
	RevokeKey(token Digest, id string) error
	// Usage is both windows of a session's account, not charged.
	Usage(token Digest) (QuotaResult, error)
	// KeyUsage is both windows of a key's account, not charged.
	KeyUsage(key Digest) (QuotaResult, error)
}

// Operator is what an operator may do to accounts; by is who does it and goes into the log.
type Operator interface {
	ListAccounts() ([]Summary, error)
	ShowAccount(id uint64) (Record, QuotaResult, error)
	SuspendAccount(id uint64, reason, by string) error
	RestoreAccount(id uint64, by string) error
	SetAccountQuota(id uint64, allowance Quota, by string) error
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
	Quota      Quota // zero = the node's
	SpentToday int
}

// LoginMail is what the mailer sends: a login code to an address.
type LoginMail struct {
	To      Email
	Code    Secret
	Expires time.Time
}

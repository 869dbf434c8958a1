package account

import (
	"net/netip"
	"time"
)

// Caller is the client that sends a request: the owner of a well-formed API key, or an anonymous client.
type Caller struct {
	Key             Digest
	HasKey          bool // Key is a result of ParseKey
	HasMalformedKey bool // ParseKey refused the request's key
	Address         netip.Addr
}

// Admission is the result of Admitter.Admit, with the data for Refund.
type Admission struct {
	QuotaResult
	Account uint64 // the charged account; 0 = Address was charged
	Address netip.Addr
	At      ClockReading
}

// Admitter admits requests. Errors are *engine.Error with one of these codes: a code of HTTP status 401 (only when keys
// are required), CodeOverloaded, CodeReadOnly, CodeNoMajority, or CodeDataUnavailable (during the replay of the log).
// If an Admission is not Admitted, the client gets status 429. While keys are not required, a caller is treated as
// anonymous if its key is malformed, unknown or revoked, or its account is suspended.
type Admitter interface {
	Admit(Caller) (Admission, error)
	Refund(Admission)
	// LimitsEnforced reports whether limits are on. If not, Admit is not called and responses have no rate-limit
	// headers.
	LimitsEnforced() bool
	// KeyPolicy returns the current policy. It does not block.
	KeyPolicy() KeyPolicy
}

// Service lets the owner of an e-mail address log in and manage keys. An argument token is the digest of a session
// token. A change is on disk when the method returns without error. Errors are *engine.Error.
type Service interface {
	RequestCode(email Email, from Requester) error
	OpenSession(email Email, code string, from Requester) (token Secret, expires time.Time, err error)
	CloseSession(token Digest) error
	Keys(token Digest) ([]KeyRecord, error)
	CreateKey(token Digest, name string) (KeyRecord, Secret, error)
	RevokeKey(token Digest, id string) error
	// Usage returns both quota windows (day and minute) of a session's account. It charges nothing.
	Usage(token Digest) (QuotaResult, error)
	// KeyUsage returns both windows of a key's account. It charges nothing.
	KeyUsage(key Digest) (QuotaResult, error)
}

// Operator is the actions of an operator on accounts. The argument by is the operator's name, for the log.
type Operator interface {
	ListAccounts() ([]Summary, error)
	ShowAccount(id uint64) (Record, QuotaResult, error)
	SuspendAccount(id uint64, reason, by string) error
	RestoreAccount(id uint64, by string) error
	SetAccountQuota(id uint64, quota Quota, by string) error
	Announce(requiredAt time.Time, by string) (KeyPolicy, error)
	WithdrawAnnouncement(by string) error
	// UnlockLogin lets the owner of an address log in again after others have used up limits of the address or of all
	// addresses.
	UnlockLogin(email EmailID, by string) error
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

// LoginMail is a login code to be mailed to an address.
type LoginMail struct {
	To      Email
	Code    Secret
	Expires time.Time
}

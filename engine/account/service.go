package account

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/tasard/tasard/engine"
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

// KeyNoticeMin is the minimum time from an announcement until API keys are required.
const KeyNoticeMin = 14 * 24 * time.Hour

// KeyPolicy is the time from which every request needs an API key. The zero value means never.
type KeyPolicy struct {
	AnnouncedAt time.Time `json:"announcedAt,omitzero"`
	RequiredAt  time.Time `json:"requiredAt,omitzero"`
	By          string    `json:"by,omitempty"`
}

// Announced is the event of an announcement that keys will be required.
type Announced struct{ KeyPolicy }

// AnnouncementWithdrawn is the event of a withdrawn announcement.
type AnnouncementWithdrawn struct {
	At time.Time
	By string
}

// Pending reports whether keys will be required later. Until then every response has the headers Deprecation, Sunset
// and Link.
func (p KeyPolicy) Pending(now time.Time) bool {
	return !p.RequiredAt.IsZero() && now.Before(p.RequiredAt)
}

// Required reports whether keys are required.
func (p KeyPolicy) Required(now time.Time) bool {
	return !p.RequiredAt.IsZero() && !now.Before(p.RequiredAt)
}

// Announce returns the event that requires keys from requiredAt, rounded down to a second.
func (p KeyPolicy) Announce(requiredAt, now time.Time, by string) (*Announced, error) {
	requiredAt, now = engine.PlainUTC(requiredAt).Truncate(time.Second), engine.PlainUTC(now)
	if p.Required(now) {
		return nil, &engine.Error{Code: engine.CodeInvalidParameters, Message: fmt.Sprintf("keys are required since %s", p.RequiredAt.Format(time.RFC3339))}
	}
	if earliest := now.Add(KeyNoticeMin + time.Second - 1).Truncate(time.Second); requiredAt.Before(earliest) {
		return nil, &engine.Error{Code: engine.CodeInvalidParameters,
			Message: fmt.Sprintf("keys can't be required before %s: the notice is 14 days", earliest.Format(time.RFC3339))}
	}
	return &Announced{KeyPolicy{now.Truncate(time.Second), requiredAt, by}}, nil
}

// Withdraw returns the event that withdraws a pending announcement.
func (p KeyPolicy) Withdraw(now time.Time, by string) (*AnnouncementWithdrawn, error) {
	if !p.Pending(now) {
		return nil, &engine.Error{Code: engine.CodeInvalidParameters, Message: "no announcement is pending"}
	}
	return &AnnouncementWithdrawn{engine.PlainUTC(now), by}, nil
}

package accounts

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// Config is the part of actors.Config about accounts, with the defaults filled in.
type Config struct {
	Clock                                  func() time.Time
	Steady                                 func() time.Duration
	Random                                 io.Reader
	Logger                                 *slog.Logger
	LoginCodeKey                           []byte
	Mail                                   func(account.LoginMail) error
	KeyPrefix                              string
	QuotaPolicy                            account.QuotaPolicy
	LimitsOff                              bool
	WriteTimeout                           time.Duration
	MailboxMax, PendingWritesMax           int
	AnonymousClientsMax, LoadedMax, Shards int
}

// AskTimeout is how long a request waits for its answer. Requests take microseconds; a short timeout would turn a
// pause of the machine into errors.
const AskTimeout = 5 * time.Second

// host is the System that runs the accounts.
type host interface {
	Available() error   // nil while the state is complete
	BeginChange() error // admits a call that changes something; EndChange must follow
	EndChange()
}

// Limits of a quota. The one of the minute bounds memory: each request of the last minute is kept.
const (
	QuotaDayMax    = 1_000_000_000
	QuotaMinuteMax = 100_000
)

// CheckQuota reports a quota outside the limits. Zero is valid: the node's default.
func CheckQuota(q account.Quota) error {
	if q.Day < 0 || q.Day > QuotaDayMax {
		return fmt.Errorf("%d requests a day, want 0 to %d", q.Day, QuotaDayMax)
	}
	if q.Minute < 0 || q.Minute > QuotaMinuteMax {
		return fmt.Errorf("%d requests a minute, want 0 to %d", q.Minute, QuotaMinuteMax)
	}
	return nil
}

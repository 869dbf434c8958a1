package accounts

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// Config is the part of actors.Config about accounts, completed.
type Config struct {
	Clock                                  func() time.Time
	Steady                                 func() time.Duration
	Random                                 io.Reader
	Logger                                 *slog.Logger
	Seal                                   []byte
	Mail                                   func(account.LoginMail) error
	KeyPrefix                              string
	Terms                                  account.QuotaPolicy
	LimitsOff                              bool
	WriteTimeout                           time.Duration
	MailboxMax, PendingWritesMax           int
	AnonymousClientsMax, LoadedMax, Shards int
}

// AskTimeout is how long a question waits for its answer. Questions take microseconds; a short timeout would turn a
// pause of the machine into errors.
const AskTimeout = 5 * time.Second

// host is the System that runs the accounts.
type host interface {
	Available() error   // nil while the state is complete
	BeginChange() error // admits a call that changes something; EndChange must follow
	EndChange()
}

// Limits of a quota. Each request of the minute takes memory of its own.
const (
	AllowanceDayMax    = 1_000_000_000
	AllowanceMinuteMax = 100_000
)

// CheckAllowance reports a quota outside the limits. Zero is valid: the node's default.
func CheckAllowance(a account.Quota) error {
	if a.Day < 0 || a.Day > AllowanceDayMax {
		return fmt.Errorf("%d requests a day, want 0 to %d", a.Day, AllowanceDayMax)
	}
	if a.Minute < 0 || a.Minute > AllowanceMinuteMax {
		return fmt.Errorf("%d requests a minute, want 0 to %d", a.Minute, AllowanceMinuteMax)
	}
	return nil
}

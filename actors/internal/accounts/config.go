package accounts

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// Config is what actors.Config says of accounts, complete.
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
	AskTimeout, WriteTimeout, Idle         time.Duration
	MailboxMax, PendingWritesMax           int
	AnonymousClientsMax, LoadedMax, Shards int
}

// host is the system that runs the accounts.
type host interface {
	Available() error   // nil while the state is complete
	BeginChange() error // lets a call in that changes something, which must leave
	EndChange()
}

// What an allowance may be at most. Each request of the minute is remembered by itself.
const (
	AllowanceDayMax    = 1_000_000_000
	AllowanceMinuteMax = 100_000
)

// CheckAllowance holds limits against what can be kept. Zero is the node's own.
func CheckAllowance(a account.Quota) error {
	if a.Day < 0 || a.Day > AllowanceDayMax {
		return fmt.Errorf("%d requests a day, want 0 to %d", a.Day, AllowanceDayMax)
	}
	if a.Minute < 0 || a.Minute > AllowanceMinuteMax {
		return fmt.Errorf("%d requests a minute, want 0 to %d", a.Minute, AllowanceMinuteMax)
	}
	return nil
}

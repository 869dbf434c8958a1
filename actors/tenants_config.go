package actors

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// accountsConfig is what actors.Config says of accounts, complete.
type accountsConfig struct {
	Clock                          func() time.Time
	Steady                         func() time.Duration
	Random                         io.Reader
	Logger                         *slog.Logger
	Seal                           []byte
	Mail                           func(account.Letter) error
	KeyPrefix                      string
	Terms                          account.Terms
	LimitsOff                      bool
	AskTimeout, WriteTimeout, Idle time.Duration
	MailboxMax, PendingWritesMax   int
	StrangersMax, LiveMax, Shards  int
}

// host is the system that runs the accounts.
type host interface {
	Available() error // nil while the state is complete
	Enter() error     // lets a call in that changes something, which must leave
	Leave()
}

// What an allowance may be at most. Each request of the minute is remembered by itself.
const (
	allowanceDayMax    = 1_000_000_000
	allowanceMinuteMax = 100_000
)

// checkAllowance holds limits against what can be kept. Zero is the node's own.
func checkAllowance(a account.Allowance) error {
	if a.Day < 0 || a.Day > allowanceDayMax {
		return fmt.Errorf("%d requests a day, want 0 to %d", a.Day, allowanceDayMax)
	}
	if a.Minute < 0 || a.Minute > allowanceMinuteMax {
		return fmt.Errorf("%d requests a minute, want 0 to %d", a.Minute, allowanceMinuteMax)
	}
	return nil
}

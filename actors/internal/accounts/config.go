package accounts

import (
	"fmt"
	"io"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// Config configures Accounts. Package actors sets these fields from actors.Config, where they are explained.
type Config struct {
	Clock                        func() time.Time
	Monotonic                    func() time.Duration
	Random                       io.Reader
	Mail                         func(account.LoginMail) error
	KeyPrefix                    string
	QuotaPolicy                  account.QuotaPolicy
	LimitsOff                    bool
	WriteTimeout                 time.Duration
	MailboxMax, PendingWritesMax int
	AnonymousClientsMax, Shards  int

	Available   func() error // nil if the node is ready, else the reason (replay or stop)
	BeginChange func() error // called before each change; after nil, call EndChange when the change ends
	EndChange   func()
	AskLeader   func(records [][]byte) []error // sends asks for leases to the leader; returns a result for each, as Accounts.Grant
}

// AskTimeout is the maximum time for a reply to a request. A reply usually takes microseconds. The timeout is much
// longer, so that a short pause of the machine does not cause errors.
const AskTimeout = 5 * time.Second

// leaseWaitMax is the maximum time that an API request waits for a quota lease in a cluster. It is enough for the
// election of a new leader after a crash, also on a busy machine.
const leaseWaitMax = time.Second

// Limits of a quota. QuotaMinuteMax bounds memory: an account stores the time of each request of the last minute.
const (
	QuotaDayMax    = 1_000_000_000
	QuotaMinuteMax = 100_000
)

// CheckQuota returns an error for a quota outside the limits. A zero field is valid and means the node's default.
func CheckQuota(q account.Quota) error {
	if q.Day < 0 || q.Day > QuotaDayMax {
		return fmt.Errorf("%d requests a day, want 0 to %d", q.Day, QuotaDayMax)
	}
	if q.Minute < 0 || q.Minute > QuotaMinuteMax {
		return fmt.Errorf("%d requests a minute, want 0 to %d", q.Minute, QuotaMinuteMax)
	}
	return nil
}

package actors

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Config configures a System. Dir (or Journal) and Clock are required; other fields may be zero.
type Config struct {
	// Dir is the directory of the local log. It is created if it does not exist. Only one process at a time can use it.
	Dir string
	// Clock returns the current time, for the staleness and validation of rates. Required.
	Clock func() time.Time
	// Catalogue has institutions, currencies and sources. nil = engine.DefaultCatalogue. Observations of a currency
	// that it lacks are refused. Rates of such a currency that were observed earlier are still served.
	Catalogue *engine.Catalogue
	// Rules are the limits of validation. Zero = engine.DefaultRules.
	Rules engine.Rules
	// Logger receives messages for the operator. nil = none.
	Logger *slog.Logger
	// Log configures the local log.
	Log LogConfig
	// Journal replaces the local log in Dir. The system owns and closes it.
	Journal commitlog.Journal
	// LoginCodeKey is the 32-byte secret with which the nodes of a cluster check login codes. nil = a random
	// one for this process. Codes are then not in the log.
	LoginCodeKey []byte

	// WriteTimeout is how long a call waits for its write to become durable. 0 = 60 s. After a timeout the caller gets
	// an error, but the write may still succeed.
	WriteTimeout time.Duration
	// MailboxMax is the maximum number of requests that wait for one actor. Further requests get CodeOverloaded.
	// 0 = 4096, at most 1,048,576.
	MailboxMax int
	// PendingWritesMax is the maximum number of commands that wait for one currency or account while another command is
	// being written. Further commands get CodeOverloaded. 0 = 64. Each command has up to 2,048 observations.
	PendingWritesMax int
	// SnapshotRecords is the number of records after which a snapshot is taken. The snapshot is taken later if the
	// accounts are more than four times as large as these records. 0 = 50,000, which replay in less than a second. Each
	// snapshot writes the whole state, so small numbers are expensive.
	SnapshotRecords int
	// SnapshotBytes is the size of records after which a snapshot is taken. 0 = 64 MiB.
	SnapshotBytes int64

	// QuotaPolicy has the quotas of callers. Zero fields: 1,000 requests a day, 60 in a minute, leases of 16.
	QuotaPolicy account.QuotaPolicy
	// LimitsOff admits every caller without counting requests. If keys are required, they are still checked.
	LimitsOff bool
	// KeyPrefix is the prefix of new keys: account.KeyPrefixLive or account.KeyPrefixTest. "" = live.
	KeyPrefix string
	// Random is the source of keys, codes and tokens. nil = crypto/rand; other sources are for tests.
	Random io.Reader
	// Mailer sends login codes. If it is nil, logins are not possible and RequestCode returns CodeDataUnavailable.
	Mailer Mailer
	// Steady is a monotonic clock. It never goes back, even if the wall clock is set back. nil = the monotonic part of
	// the times of Clock.
	Steady func() time.Duration
	// AnonymousClientsMax is the maximum number of clients without a key that are counted at once, by address.
	// 0 = 65,536, with up to 600 bytes each. A further client replaces the client that was idle longest.
	AnonymousClientsMax int
	// AccountShards is the number of actors that share the accounts. 0 = 16, at most 256. It may change at each start.
	AccountShards int
	// AccountsLoadedMax is the maximum number of loaded accounts, with about 1 KiB each. Requests for further accounts
	// get CodeOverloaded. 0 = 131,072.
	AccountsLoadedMax int
}

// Mailer sends e-mails with login codes. Send must not wait for a mail server. It queues the e-mail or returns an
// error. The API returns an *engine.Error to its caller.
type Mailer interface {
	Send(account.LoginMail) error
}

// LogConfig configures the local log; see wal.Options.
type LogConfig struct {
	// SegmentBytes is the size of a segment file. 0 = 4 MiB.
	SegmentBytes int
	// ReserveBytes is the free space below which writes are rejected. 0 = 64 MiB. Negative = no check, so that a full
	// disk stops the node.
	ReserveBytes int64
}

const (
	writeTimeoutDefault    = 60 * time.Second
	mailboxDefault         = 4096
	mailboxMax             = 1 << 20
	pendingWritesDefault   = 64
	snapshotRecordsDefault = 50_000
	snapshotBytesDefault   = 64 << 20
)

// complete checks the configuration and fills in defaults.
func (c Config) complete() (Config, error) {
	switch {
	case c.Clock == nil:
		return c, errors.New("check configuration: Clock is nil")
	case c.Dir == "" && c.Journal == nil:
		return c, errors.New("check configuration: neither Dir nor Journal is set")
	case c.WriteTimeout < 0:
		return c, errors.New("check configuration: WriteTimeout is negative")
	case c.MailboxMax < 0 || c.MailboxMax > mailboxMax:
		return c, fmt.Errorf("check configuration: MailboxMax is %d, want 0 to %d", c.MailboxMax, mailboxMax)
	case c.PendingWritesMax < 0 || c.SnapshotRecords < 0 || c.SnapshotBytes < 0:
		return c, errors.New("check configuration: a limit is negative")
	}
	if c.Catalogue == nil {
		c.Catalogue = engine.DefaultCatalogue()
	}
	if c.Rules == (engine.Rules{}) {
		c.Rules = engine.DefaultRules()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	orDefault(&c.WriteTimeout, writeTimeoutDefault)
	orDefault(&c.MailboxMax, mailboxDefault)
	orDefault(&c.PendingWritesMax, pendingWritesDefault)
	orDefault(&c.SnapshotRecords, snapshotRecordsDefault)
	orDefault(&c.SnapshotBytes, snapshotBytesDefault)
	return c.completeAccounts()
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

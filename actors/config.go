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
	// Dir is the directory of the local log. It is created if it does not exist; one process at a time may hold it.
	Dir string
	// Clock returns the present time, which decides staleness and validation. Required.
	Clock func() time.Time
	// Catalogue holds institutions, currencies and sources. nil = engine.DefaultCatalogue. A currency that it lacks cannot
	// be observed; one that was observed before is still served.
	Catalogue *engine.Catalogue
	// Rules are the limits of validation. Zero = engine.DefaultRules.
	Rules engine.Rules
	// Logger gets what an operator should know. nil discards it.
	Logger *slog.Logger
	// Log configures the local log.
	Log LogConfig
	// Journal replaces the local log in Dir. The system owns and closes it.
	Journal commitlog.Journal
	// LoginCodeKey is the 32-byte secret with which the nodes of a cluster check login codes. nil = a random one for this
	// process; then codes are not in the log.
	LoginCodeKey []byte

	// WriteTimeout is how long an intake waits for the disk. 0 = 60 s. After it the caller gets an error, although the
	// write may still be made.
	WriteTimeout time.Duration
	// MailboxMax is how many questions may wait for one actor; further ones are answered CodeOverloaded. 0 = 4096, at most
	// 1,048,576.
	MailboxMax int
	// PendingWritesMax is how many commands may wait for one currency or account while another one is being written;
	// further ones are answered CodeOverloaded. 0 = 64. Each holds up to 2,048 observations.
	PendingWritesMax int
	// SnapshotRecords is after how many records a snapshot is taken, or later if the accounts are more than four times as
	// large as these records. 0 = 50,000, which replay in less than a second. With small numbers the whole state is
	// written again and again.
	SnapshotRecords int
	// SnapshotBytes is after how many bytes of records a snapshot is taken. 0 = 64 MiB.
	SnapshotBytes int64

	// QuotaPolicy has the quotas of callers. Zero fields: 1,000 requests a day, 60 in a minute, leases of 16.
	QuotaPolicy account.QuotaPolicy
	// LimitsOff admits every caller and counts nothing. Keys, once required, are still checked.
	LimitsOff bool
	// KeyPrefix begins every new key: account.KeyPrefixLive or account.KeyPrefixTest. "" = live.
	KeyPrefix string
	// Random is the source of keys, codes and tokens. nil = crypto/rand; other sources are for tests.
	Random io.Reader
	// Mailer sends login codes. nil: logins are not possible, RequestCode answers CodeDataUnavailable.
	Mailer Mailer
	// Steady is a clock that only grows, whatever happens to the time of day. nil = the monotonic part of what Clock
	// returns.
	Steady func() time.Duration
	// AnonymousClientsMax is how many callers without a key are counted at once, by address. 0 = 65,536, each of up to 600
	// bytes; beyond it the count of the client that was idle longest is dropped.
	AnonymousClientsMax int
	// AccountShards is how many actors share the accounts. 0 = 16, at most 256. It may differ from start to start.
	AccountShards int
	// AccountsLoadedMax is how many accounts are loaded at once, about 1 KiB each; a request for a further one is answered
	// CodeOverloaded. 0 = 131,072.
	AccountsLoadedMax int
}

// Mailer sends e-mails with login codes. Send must not wait for a mail server: it queues the e-mail or returns an
// error, an *engine.Error if the caller of the API should see it.
type Mailer interface {
	Send(account.LoginMail) error
}

// LogConfig configures the local log; see wal.Options.
type LogConfig struct {
	// SegmentBytes is the size of a segment file. 0 = 4 MiB.
	SegmentBytes int
	// ReserveBytes is the free space below which writes are refused. 0 = 64 MiB, negative = no check: then
	// a full disk stops the node.
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

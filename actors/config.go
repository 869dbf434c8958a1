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

// Config says what a system runs and where it keeps it. Dir (or Journal) and Clock are required; the zero
// value of everything else is good.
type Config struct {
	// Dir is the directory of the local log. It is created when absent and held by one process at a time.
	Dir string
	// Clock tells what time it is: what is stale, what an observation is held against. Required.
	Clock func() time.Time
	// Catalogue holds institutions, currencies and sources. nil = engine.DefaultCatalogue. A currency that
	// it lacks cannot be observed; one that was observed before is still served.
	Catalogue *engine.Catalogue
	// Rules are the limits of what is believed. Zero = engine.DefaultRules.
	Rules engine.Rules
	// Logger gets what an operator should know. nil discards.
	Logger *slog.Logger
	// Log says how the local log is kept.
	Log LogConfig
	// Journal keeps the records in place of the local log in Dir. The system owns it and closes it.
	Journal commitlog.Journal
	// LoginCodeKey is the secret by which all nodes of a cluster check login codes, 32 bytes. nil = drawn at the start, for this process alone:
	// then codes are not in the log.
	LoginCodeKey []byte

	// AskTimeout is how long a question waits for its answer. 0 = 5 s. Questions take microseconds; a
	// short one turns a pause of the machine into errors.
	AskTimeout time.Duration
	// WriteTimeout is how long an intake waits for the disk. 0 = 60 s. After it the caller gets an error
	// although the write may still come true.
	WriteTimeout time.Duration
	// MailboxMax is how many questions may wait for one actor; one more is answered overloaded. 0 = 4096,
	// at most 1,048,576. Each waiting question is a caller that waits.
	MailboxMax int
	// PendingWritesMax is how many commands may wait for one currency while another one is being written;
	// one more is answered overloaded. 0 = 64. Each holds up to 2,048 observations in memory.
	PendingWritesMax int
	// SnapshotRecords is after how many records a snapshot is taken; with so many accounts that they are
	// more than four times as long as these records, later. 0 = 50,000, which replay in less than a second.
	// Small numbers write the whole state again and again.
	SnapshotRecords int
	// SnapshotBytes is after how many bytes of records a snapshot is taken. 0 = 64 MiB.
	SnapshotBytes int64

	// Terms are the limits of callers and how they are kept (L1, L2). Zero fields: 1,000 requests a day, 60
	// in a minute, leases of 16.
	Terms account.QuotaPolicy
	// LimitsOff admits everybody and counts nothing (L10). Keys, once required, are still asked for.
	LimitsOff bool
	// KeyPrefix begins every new key: account.KeyPrefixLive or account.KeyPrefixTest. "" = live.
	KeyPrefix string
	// Random is where keys, codes and tokens come from. nil = the system's cryptographic source; anything
	// else is for tests.
	Random io.Reader
	// Mailer sends login codes. nil: nobody can log in, RequestCode answers CodeDataUnavailable.
	Mailer Mailer
	// Steady is a clock that only grows, whatever happens to the time of day. nil = the monotonic part of
	// what Clock returns, which time.Now has.
	Steady func() time.Duration
	// AnonymousClientsMax is how many callers without a key are counted at once, by address. 0 = 65,536, each of
	// up to 600 bytes; with more, who was quiet longest is forgotten.
	AnonymousClientsMax int
	// AccountShards is how many actors share the accounts. 0 = 16, at most 256. It may change at any start.
	AccountShards int
	// AccountIdle is how long nobody asks about an account until its actor ends; its state stays. 0 = 2 min.
	AccountIdle time.Duration
	// AccountsLoadedMax is how many accounts have an actor at once, about 2 KiB each; one more is answered
	// overloaded. 0 = 131,072.
	AccountsLoadedMax int
}

// Mailer sends letters with login codes. Send must not wait for a mail server: it takes the letter into a
// queue, or answers an error, an *engine.Error if the caller of the API should know what to do.
type Mailer interface {
	Send(account.LoginMail) error
}

// LogConfig says how the local log is kept; see wal.Options.
type LogConfig struct {
	// SegmentBytes is the size of a segment file. 0 = 4 MiB.
	SegmentBytes int
	// ReserveBytes is the free space below which writes are refused. 0 = 64 MiB, negative = no check: then
	// a full disk stops the node.
	ReserveBytes int64
}

const (
	askTimeoutDefault      = 5 * time.Second
	writeTimeoutDefault    = 60 * time.Second
	mailboxDefault         = 4096
	mailboxMax             = 1 << 20
	pendingWritesDefault   = 64
	snapshotRecordsDefault = 50_000
	snapshotBytesDefault   = 64 << 20
)

// complete checks the configuration and fills in what is zero.
func (c Config) complete() (Config, error) {
	switch {
	case c.Clock == nil:
		return c, errors.New("check configuration: Clock is nil")
	case c.Dir == "" && c.Journal == nil:
		return c, errors.New("check configuration: neither Dir nor Journal is set")
	case c.AskTimeout < 0 || c.WriteTimeout < 0:
		return c, errors.New("check configuration: a timeout is negative")
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
	orDefault(&c.AskTimeout, askTimeoutDefault)
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

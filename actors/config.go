package actors

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// Config configures a System. Clock and either Dir or Journal are required. All other fields may be zero.
type Config struct {
	// Dir is the directory of this node's log, the default journal. Open creates a missing directory. Only one process
	// can use a directory at a time.
	Dir string
	// Clock returns the current time, for the expiry and validation of rates.
	Clock func() time.Time
	// Catalogue lists institutions, currencies and sources. nil = engine.DefaultCatalogue. New rates of a currency
	// outside the catalogue are refused. Earlier rates of such a currency are still served.
	Catalogue *engine.Catalogue
	// Rules are the limits for the validation of rates. Zero = engine.DefaultRules.
	Rules engine.Rules
	// Logger receives messages for the operator. nil = none.
	Logger *slog.Logger
	// Log configures the log in Dir. Open sets its Clock and Logger.
	Log LogConfig
	// Journal replaces the log in Dir, for example with a journal that several nodes share. Close closes it.
	Journal commitlog.Journal
	// WriteTimeout limits the time until a call's write is durable. 0 = 60 s. After a timeout the caller gets an error,
	// but the write may still succeed.
	WriteTimeout time.Duration
	// MailboxMax is the maximum number of waiting requests of one actor. Further requests get CodeOverloaded. 0 =
	// 4,096, at most 1,048,576.
	MailboxMax int
	// PendingWritesMax is the maximum number of commands that wait for a write of the same currency or account. Further
	// commands get CodeOverloaded. 0 = 64. A command contains up to 2,048 observations (rates of one source).
	PendingWritesMax int
	// SnapshotRecords is the number of records between snapshots. 0 = 50,000, which replay in less than a second. Small
	// numbers are expensive, because each snapshot writes the whole state. Snapshots are rarer if the encoded accounts
	// are more than four times as large as the records between two snapshots.
	SnapshotRecords int
	// SnapshotBytes is the total size of the records between snapshots. 0 = 64 MiB.
	SnapshotBytes int64

	// QuotaPolicy sets the callers' quotas. Defaults of zero fields: 1,000 requests a day, 60 in a minute, quota leases
	// of 16 requests. An account reserves a lease, a part of its quota, with one record of the log.
	QuotaPolicy account.QuotaPolicy
	// LimitsOff admits every caller without counting requests. API keys are still checked if keys are required.
	LimitsOff bool
	// KeyPrefix is the prefix of new API keys: account.KeyPrefixLive or account.KeyPrefixTest. "" = live.
	KeyPrefix string
	// Random is the source of API keys, login codes and session tokens. nil = crypto/rand. Set it only in tests.
	Random io.Reader
	// Mailer sends login codes. nil: logins are not possible, and RequestCode returns CodeMailUnavailable.
	Mailer Mailer
	// Monotonic is a clock that never goes back, even if the wall clock is set back. nil = the monotonic reading of
	// Clock's times.
	Monotonic func() time.Duration
	// AnonymousClientsMax is the maximum number of clients without an API key (IP addresses) whose requests are
	// counted. 0 = 65,536, with up to 600 bytes each. A new address replaces the address that has been idle longest.
	AnonymousClientsMax int
	// AccountShards is the number of actors (shards) among which the accounts are divided. 0 = 16, at most 256. It may
	// differ at each start.
	AccountShards int
}

// Mailer sends e-mails with login codes. Send must not wait for a mail server: it queues the e-mail or returns an
// error. An *engine.Error is passed on to the API's client.
type Mailer interface {
	Send(account.LoginMail) error
}

// LogConfig configures the log in Config.Dir.
type LogConfig = wal.Options

const (
	writeTimeoutDefault    = 60 * time.Second
	mailboxDefault         = 4096
	mailboxMax             = 1 << 20
	pendingWritesDefault   = 64
	snapshotRecordsDefault = 50_000
	snapshotBytesDefault   = 64 << 20
	accountShardsDefault   = 16
	accountShardsMax       = 256
	leaseMax               = 100_000
)

// complete checks the configuration and sets the defaults of zero fields.
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
	c.Rules = cmp.Or(c.Rules, engine.DefaultRules())
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.WriteTimeout = cmp.Or(c.WriteTimeout, writeTimeoutDefault)
	c.MailboxMax = cmp.Or(c.MailboxMax, mailboxDefault)
	c.PendingWritesMax = cmp.Or(c.PendingWritesMax, pendingWritesDefault)
	c.SnapshotRecords = cmp.Or(c.SnapshotRecords, snapshotRecordsDefault)
	c.SnapshotBytes = cmp.Or(c.SnapshotBytes, snapshotBytesDefault)
	return c.completeAccounts()
}

// completeAccounts checks the fields about accounts and sets their defaults.
func (c Config) completeAccounts() (Config, error) {
	c.QuotaPolicy.DefaultQuota.Day = cmp.Or(c.QuotaPolicy.DefaultQuota.Day, account.DayLimitDefault)
	c.QuotaPolicy.DefaultQuota.Minute = cmp.Or(c.QuotaPolicy.DefaultQuota.Minute, account.MinuteLimitDefault)
	c.QuotaPolicy.LeaseSize = cmp.Or(c.QuotaPolicy.LeaseSize, account.LeaseSizeDefault)
	c.KeyPrefix = cmp.Or(c.KeyPrefix, account.KeyPrefixLive)
	c.AnonymousClientsMax = cmp.Or(c.AnonymousClientsMax, account.AnonymousRowsDefault)
	c.AccountShards = cmp.Or(c.AccountShards, accountShardsDefault)
	if c.Random == nil {
		c.Random = rand.Reader
	}
	switch {
	case accounts.CheckQuota(c.QuotaPolicy.DefaultQuota) != nil:
		return c, fmt.Errorf("check configuration: QuotaPolicy: %w", accounts.CheckQuota(c.QuotaPolicy.DefaultQuota))
	case c.QuotaPolicy.LeaseSize < 1 || c.QuotaPolicy.LeaseSize > leaseMax:
		return c, fmt.Errorf("check configuration: QuotaPolicy.LeaseSize is %d, want 1 to %d", c.QuotaPolicy.LeaseSize, leaseMax)
	case c.KeyPrefix != account.KeyPrefixLive && c.KeyPrefix != account.KeyPrefixTest:
		return c, fmt.Errorf("check configuration: KeyPrefix is %q, want %q or %q", c.KeyPrefix, account.KeyPrefixLive, account.KeyPrefixTest)
	case c.AnonymousClientsMax < 1:
		return c, errors.New("check configuration: AnonymousClientsMax is negative")
	case c.AccountShards < 1 || c.AccountShards > accountShardsMax:
		return c, fmt.Errorf("check configuration: AccountShards is %d, want 1 to %d", c.AccountShards, accountShardsMax)
	}
	return c, nil
}

func (s *System) accountsConfig() accounts.Config {
	c := &s.config
	a := accounts.Config{
		Clock: c.Clock, Monotonic: c.Monotonic, Random: c.Random, KeyPrefix: c.KeyPrefix, QuotaPolicy: c.QuotaPolicy,
		LimitsOff: c.LimitsOff, WriteTimeout: c.WriteTimeout, MailboxMax: c.MailboxMax,
		PendingWritesMax: c.PendingWritesMax, AnonymousClientsMax: c.AnonymousClientsMax, Shards: c.AccountShards,
		Available: s.available, BeginChange: s.beginChange, EndChange: s.calls.leave, AskLeader: s.askLeader,
	}
	if c.Mailer != nil {
		a.Mail = c.Mailer.Send
	}
	return a
}

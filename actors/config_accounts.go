package actors

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/engine/account"
)

const (
	accountShardsDefault = 16
	accountShardsMax     = 256

	leaseMax = 100_000
)

// completeAccounts checks the fields about accounts and sets their defaults.
func (c Config) completeAccounts() (Config, error) {
	orDefault(&c.QuotaPolicy.DefaultQuota.Day, account.DayLimitDefault)
	orDefault(&c.QuotaPolicy.DefaultQuota.Minute, account.MinuteLimitDefault)
	orDefault(&c.QuotaPolicy.LeaseSize, account.LeaseSizeDefault)
	orDefault(&c.KeyPrefix, account.KeyPrefixLive)
	orDefault(&c.AnonymousClientsMax, account.AnonymousRowsDefault)
	orDefault(&c.AccountShards, accountShardsDefault)
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

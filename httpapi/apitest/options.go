package apitest

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Option configures the node of Start or Open.
type Option func(*config)

// config is the result of the options.
type config struct {
	seed         string
	rates        []Rate
	start        time.Time // zero = the time of the data set (Seed), or Epoch without one
	follow       func() time.Time
	onPort       bool
	listener     net.Listener
	catalogue    *engine.Catalogue
	extraName    string
	extra        []byte // a catalogue file; nil = none
	rules        engine.Rules
	limits       bool
	quota        account.Quota
	keysRequired bool
	err          error // problem of the options
}

func newConfig(options []Option) *config {
	c := &config{rules: engine.DefaultRules()}
	for i, option := range options {
		if option == nil {
			c.err = errors.Join(c.err, fmt.Errorf("option %d is nil; leave it out", i+1))
			continue
		}
		option(c)
	}
	return c
}

// Seed loads a data set with its catalogue (institutions, currencies and sources), and sets the clock to the time of
// the data set. The data set "standard/v1" never changes; "standard" is the newest version. Its time is noon of 2 March
// 2026 in Santo Domingo, and its history begins on 21 February. The institutions are invented. Three of them are
// special: coral stopped publishing three days ago, ceiba is inactive, and ozama publishes only one side (buy or sell).
func Seed(name string) Option { return func(c *config) { c.seed = name } }

// Rates publishes rates at the start, after the data set (Seed). The option may be repeated.
func Rates(rates ...Rate) Option { return func(c *config) { c.rates = append(c.rates, rates...) } }

// At sets the time at which the clock starts. It does not change the times in a data set (Seed).
func At(start time.Time) Option { return func(c *config) { c.start = start } }

// FollowClock makes Node.Clock follow another clock, such as time.Now in a bubble of testing/synctest. Clock.Set,
// Clock.Advance and the time of a data set (Seed) set the offset between the two clocks.
func FollowClock(clock func() time.Time) Option { return func(c *config) { c.follow = clock } }

// OnPort listens on a free port of the loopback interface, for other processes. Node.URL contains the port.
func OnPort() Option { return func(c *config) { c.onPort = true } }

// OnListener accepts the connections of a listener. Node.Close closes the listener.
func OnListener(listener net.Listener) Option { return func(c *config) { c.listener = listener } }

// Catalogue sets the institutions, currencies and sources. The default is the catalogue of the data set (Seed), or
// engine.DefaultCatalogue without a data set.
func Catalogue(catalogue *engine.Catalogue) Option {
	return func(c *config) { c.catalogue = catalogue }
}

// ExtendCatalogue adds the contents of a catalogue file (institutions, currencies and sources) to the catalogue. name
// is the file's name, for errors.
func ExtendCatalogue(name string, file []byte) Option {
	return func(c *config) { c.extraName, c.extra = name, file }
}

// Lenient turns off the four validation rules against sudden jumps, values far from the market, values far from the
// reference rate, and equal buy and sell values. A zero, a buy value above the sell value and a value outside the
// currency's plausible range are still refused.
func Lenient() Option {
	return func(c *config) {
		c.rules.JumpPermille, c.rules.MedianPermille, c.rules.ReferencePermille, c.rules.EqualSides = 1_000_000, 1_000_000, 0, true
	}
}

// Limits makes the node enforce the default quotas: 1,000 requests a day and 60 a minute.
func Limits() Option { return func(c *config) { c.limits = true } }

// Quota makes the node enforce these quotas: requests a day and requests a minute. 0 means the default quota (see
// Limits).
func Quota(day, minute int) Option {
	return func(c *config) { c.limits, c.quota = true, account.Quota{Day: day, Minute: minute} }
}

// KeysRequired makes the node answer requests without a valid API key with status 401.
func KeysRequired() Option { return func(c *config) { c.keysRequired = true } }

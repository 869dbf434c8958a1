package apitest

import (
	"log/slog"
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
	start        time.Time // zero = the time of the seed or Epoch
	follow       func() time.Time
	onPort       bool
	listener     net.Listener
	catalogue    *engine.Catalogue
	rules        engine.Rules
	limits       bool
	quota        account.Quota
	keysRequired bool
	randomSeed   uint64
	logger       *slog.Logger
	state        *State
}

func newConfig(options []Option) *config {
	c := &config{rules: engine.DefaultRules(), randomSeed: 1}
	for _, option := range options {
		option(c)
	}
	return c
}

// Seed loads a data set with its catalogue and sets the clock to its time. "standard/v1" never changes, "standard" is
// the newest version.
func Seed(name string) Option { return func(c *config) { c.seed = name } }

// Rates publishes rates at the start, after those of the seed. It may be given several times.
func Rates(rates ...Rate) Option { return func(c *config) { c.rates = append(c.rates, rates...) } }

// At sets the time at which the clock starts. Rates of a seed keep their own times.
func At(start time.Time) Option { return func(c *config) { c.start = start } }

// FollowClock makes the clock follow another clock, such as time.Now in a bubble of testing/synctest. Set, Advance and
// the time of a seed change the offset from the other clock.
func FollowClock(clock func() time.Time) Option { return func(c *config) { c.follow = clock } }

// OnPort listens on a free port of the loopback interface, for other processes. Node.URL has the port.
func OnPort() Option { return func(c *config) { c.onPort = true } }

// OnListener accepts connections from a listener, and closes it at the end.
func OnListener(listener net.Listener) Option { return func(c *config) { c.listener = listener } }

// Catalogue sets institutions, currencies and sources. The default is the catalogue of the seed, or without a seed
// engine.DefaultCatalogue.
func Catalogue(catalogue *engine.Catalogue) Option {
	return func(c *config) { c.catalogue = catalogue }
}

// Lenient turns off the rules against values that jump or are far from the market. Zero, crossed sides and values
// outside the plausible range of a currency are still rejected.
func Lenient() Option {
	return func(c *config) { c.rules.JumpPermille, c.rules.MedianPermille = million, million }
}

// Limits enforces the quotas of a real node: 1,000 requests a day and 60 a minute.
func Limits() Option { return func(c *config) { c.limits = true } }

// Quota is Limits with other quotas. 0 means the quota of a real node.
func Quota(day, minute int) Option {
	return func(c *config) { c.limits, c.quota = true, account.Quota{Day: day, Minute: minute} }
}

// KeysRequired refuses requests without a valid key with 401.
func KeysRequired() Option { return func(c *config) { c.keysRequired = true } }

// RandomSeed sets the seed of request ids, keys, codes and sessions. The default is 1, so they are the same in every
// run.
func RandomSeed(seed uint64) Option { return func(c *config) { c.randomSeed = seed } }

// Logger sets the logger of the node. By default its log is discarded.
func Logger(logger *slog.Logger) Option { return func(c *config) { c.logger = logger } }

// FromState starts the node with the data and the time of a State. Of a seed only the catalogue is used then. Rates and
// KeysRequired have no effect.
func FromState(state *State) Option { return func(c *config) { c.state = state } }

package apitest

import (
	"log/slog"
	"net"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Option is a wish about the node that Start or Open makes.
type Option func(*config)

// config is what the options amount to.
type config struct {
	seed         string
	rates        []Rate
	at           time.Time // zero = the seed's, or Epoch
	follow       func() time.Time
	address      string // "" = in memory
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

// Seed loads a data set, and sets the clock to its moment: "standard" is the newest version, "standard/v1" that one for ever.
// Its catalogue is the node's, unless Catalogue names another.
func Seed(name string) Option { return func(c *config) { c.seed = name } }

// Rates publishes rates at the start, behind those of the seed. Several times adds up.
func Rates(rates ...Rate) Option { return func(c *config) { c.rates = append(c.rates, rates...) } }

// At sets the clock at the start, whatever the seed says; what the seed published is as old then as it is.
func At(at time.Time) Option { return func(c *config) { c.at = at } }

// FollowClock lets the clock run with another one: time.Now, also that of a bubble of testing/synctest. Set and Advance move it
// against that. A seed, whose moment is fixed, moves it there at the start.
func FollowClock(clock func() time.Time) Option { return func(c *config) { c.follow = clock } }

// OnPort listens on a free port of the loopback interface, for other processes. URL names it.
func OnPort() Option { return OnAddress("127.0.0.1:0") }

// OnAddress listens on an address. Danger: whoever reaches it can ask; faults and data are for nobody's eyes but yours.
func OnAddress(address string) Option { return func(c *config) { c.address = address } }

// OnListener answers what a listener accepts, and closes it in the end.
func OnListener(listener net.Listener) Option { return func(c *config) { c.listener = listener } }

// Catalogue says which institutions, currencies and sources there are. Without it, and without a seed: those of the program.
func Catalogue(catalogue *engine.Catalogue) Option {
	return func(c *config) { c.catalogue = catalogue }
}

// Rules are the limits of what is believed; without it those of a real node.
func Rules(rules engine.Rules) Option { return func(c *config) { c.rules = rules } }

// Lenient lets values jump and stand far from the market. What is no rate at all stays refused: zero, crossed sides, a value
// outside the band of its currency.
func Lenient() Option {
	return func(c *config) { c.rules.JumpPermille, c.rules.MedianPermille = lenientPermille, lenientPermille }
}

// lenientPermille is a thousandfold.
const lenientPermille = 1_000_000

// Limits holds callers to the quotas of a real node: 1,000 requests a day, 60 in a minute.
func Limits() Option { return func(c *config) { c.limits = true } }

// Quota is Limits with other quotas. 0 is that of a real node.
func Quota(day, minute int) Option {
	return func(c *config) { c.limits, c.quota = true, account.Quota{Day: day, Minute: minute} }
}

// KeysRequired answers callers without a key 401, as from the end of an announcement on.
func KeysRequired() Option { return func(c *config) { c.keysRequired = true } }

// RandomSeed draws other request ids, keys, codes and sessions. Without it they are the same each time.
func RandomSeed(seed uint64) Option { return func(c *config) { c.randomSeed = seed } }

// Logger gets what the node logs; without it, nobody does.
func Logger(logger *slog.Logger) Option { return func(c *config) { c.logger = logger } }

// FromState begins with the state that a Snapshot kept, clock included. Beside it a seed gives the catalogue only, and Rates and
// KeysRequired nothing: what is published and required is in the state.
func FromState(state *State) Option { return func(c *config) { c.state = state } }

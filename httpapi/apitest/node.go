package apitest

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi"
	"github.com/tasard/tasard/httpapi/admin"
	"github.com/tasard/tasard/node/core"
)

// Node is a complete node for tests. Its methods are safe for concurrent use. The controls (the methods of Server) run
// one at a time.
type Node struct {
	// URL is the base URL of the node, without a slash at the end.
	URL string
	// Client sends requests to the node. With the listener in memory, it sends them to the node for any host name.
	Client *http.Client
	// Clock is the node's clock.
	Clock *Clock

	config   *config
	acceptor *acceptor
	inMemory *memoryListener // nil with OnPort or OnListener
	faults   faults
	mailer   codeMailer
	random   *lockedRandom
	clients  []*http.Client // results of ClientFrom
	skipped  atomic.Int64   // nanoseconds by which Keys has advanced the monotonic clock

	mu       sync.Mutex // held while a control runs
	instance *instance
	closed   bool
	closeErr error
}

// instance contains the parts of the node that a restart replaces.
type instance struct {
	journal *memoryJournal
	system  *actors.System
	server  *httpapi.Server
}

// Open starts a node. The caller must call Close.
func Open(options ...Option) (*Node, error) {
	c := &config{rules: engine.DefaultRules()}
	for _, option := range options {
		option(c)
	}
	seed, err := c.resolve()
	if err != nil {
		return nil, err
	}
	n := &Node{config: c, Clock: newClock(c.start, c.follow), random: newRandom(fmt.Sprintf("tasard apitest %016x", randomSeed))}
	if c.follow != nil && seed != nil {
		n.Clock.Set(c.start)
	}
	listener, err := n.listen()
	if err != nil {
		return nil, err
	}
	n.acceptor = newAcceptor(listener)
	if err := n.start(seed); err != nil {
		return nil, errors.Join(err, n.acceptor.close(), n.stop())
	}
	return n, nil
}

// memoryHost is the host name in the URL of a node with a listener in memory. A client other than Node.Client gets "no
// such host" with this name, which says what to do.
const memoryHost = "use-the-client-of-the-node.tasard.test"

// listen creates the listener and Node.Client.
func (n *Node) listen() (net.Listener, error) {
	if !n.config.onPort && n.config.listener == nil {
		n.inMemory = newMemoryListener()
		n.URL, n.Client = "http://"+memoryHost, n.inMemory.client(netip.MustParseAddr("192.0.2.1")) // reserved for documentation (RFC 5737)
		return n.inMemory, nil
	}
	listener, err := n.config.listener, error(nil)
	if listener == nil {
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	n.URL, n.Client = "http://"+listener.Addr().String(), &http.Client{Transport: &http.Transport{}}
	return listener, nil
}

// client returns a client with the address clientAddr. The client uses no encryption, even for https URLs.
func (m *memoryListener) client(clientAddr netip.Addr) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return m.dial(ctx, clientAddr) }
	return &http.Client{Transport: &http.Transport{DialContext: dial, DialTLSContext: dial}}
}

// start opens the first instance and accepts connections.
func (n *Node) start(seed *seed) error {
	err := n.openInstance(journalData{})
	if err == nil {
		err = n.publishInitial(seed)
	}
	if err != nil {
		return err
	}
	n.acceptor.resume(n.instance.server)
	return nil
}

// publishInitial applies the options KeysRequired, Seed and Rates to a new node.
func (n *Node) publishInitial(seed *seed) error {
	if n.config.keysRequired {
		if err := n.requireKeys(); err != nil {
			return err
		}
	}
	if seed != nil {
		receipt, err := n.instance.system.Observe(slices.Clone(seed.refreshes))
		if err = errors.Join(err, refusalError(&receipt)); err != nil {
			return fmt.Errorf("seed %s: %w", seed.name, err)
		}
	}
	if len(n.config.rates) > 0 {
		return n.publish(n.config.rates)
	}
	return nil
}

// requireKeys makes API keys required now. The announcement must be KeyNoticeMin earlier, so requireKeys sets the clock
// back to make it.
func (n *Node) requireKeys() error {
	requiredAt := n.Clock.Now().Truncate(time.Second)
	n.Clock.Advance(-account.KeyNoticeMin - time.Second)
	_, err := n.instance.system.Announce(requiredAt, operator)
	n.Clock.Advance(account.KeyNoticeMin + time.Second)
	if err != nil {
		return fmt.Errorf("require keys: %w", err)
	}
	return nil
}

// openInstance opens an instance with the contents of a journal. Like a real node it uses package node/core, but with
// the clock and the middleware of this package.
func (n *Node) openInstance(data journalData) error {
	journal := &memoryJournal{data: data}
	opened, err := core.Open(core.Config{
		Actors: n.systemConfig(journal), Seed: func() uint64 { return randomSeed }, Mail: admin.MailSMTP, PublicURL: n.URL, Demo: true,
		Random: newRandom(""), // not n.random, because API keys depend on the number of reads from n.random
		HTTP:   httpapi.Config{Harness: &httpapi.Harness{Around: n.middleware}},
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := awaitReady(opened.System); err != nil {
		return err
	}
	n.instance = &instance{journal, opened.System, opened.Server}
	return nil
}

// These limits are small, because tests run many nodes at the same time.
const (
	anonymousMax  = 256
	accountShards = 2
)

// monotonic is the node's monotonic clock: Clock plus the time skipped by Keys. Package actors ignores steps back.
func (n *Node) monotonic() time.Duration {
	return n.Clock.Now().Sub(Epoch()) + time.Duration(n.skipped.Load())
}

func (n *Node) systemConfig(journal *memoryJournal) actors.Config {
	return actors.Config{
		Journal: journal, Clock: n.Clock.Now, Monotonic: n.monotonic, Catalogue: n.config.catalogue, Rules: n.config.rules,
		QuotaPolicy: account.QuotaPolicy{DefaultQuota: n.config.quota}, LimitsOff: !n.config.limits, KeyPrefix: account.KeyPrefixTest,
		Random: n.random, Mailer: &n.mailer, AnonymousClientsMax: anonymousMax, AccountShards: accountShards,
	}
}

// awaitReady waits until the system has replayed the log. If the replay fails, it closes the system.
func awaitReady(system *actors.System) error {
	select {
	case <-system.Ready():
		return nil
	case <-system.Done():
		return errors.Join(fmt.Errorf("start: %w", system.Err()), system.Close())
	}
}

// Close closes the node. It returns an error if the node had stopped by itself before. Further calls return the same
// result.
func (n *Node) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return n.closeErr
	}
	n.closed = true
	for _, client := range append(n.clients, n.Client) {
		client.CloseIdleConnections()
	}
	err := n.acceptor.close()
	if n.instance != nil && n.instance.system.Err() != nil {
		err = errors.Join(err, fmt.Errorf("the node stopped by itself: %w", n.instance.system.Err()))
	}
	n.closeErr = errors.Join(err, n.stop())
	return n.closeErr
}

// stop stops the instance.
func (n *Node) stop() error {
	if n.instance == nil {
		return nil
	}
	err := n.instance.system.Close()
	n.instance = nil
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}

// errClosed is returned by a control if the node is closed.
var errClosed = errors.New("the node is closed")

// randomSeed makes request ids, API keys, login codes and session tokens the same in every run.
const randomSeed = 1

// lockedRandom is a seeded random source that is safe for concurrent use.
type lockedRandom struct {
	mu     sync.Mutex
	source rand.ChaCha8
}

func newRandom(seed string) *lockedRandom {
	var bytes [32]byte
	copy(bytes[:], seed)
	return &lockedRandom{source: *rand.NewChaCha8(bytes)}
}

// state returns the position of the source, for setState.
func (r *lockedRandom) state() rand.ChaCha8 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source
}

func (r *lockedRandom) setState(state rand.ChaCha8) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.source = state
}

// Read implements io.Reader.
func (r *lockedRandom) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(p)
}

// Epoch is the time at which the clock starts if no option sets another time: a Monday at noon in Santo Domingo.
func Epoch() time.Time { return time.Date(2026, 3, 2, 16, 0, 0, 0, time.UTC) }

// Clock is the node's wall clock. It stands still, or moves with another clock (option FollowClock). Set and Advance
// move it too. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	fixed  time.Time        // the time, if follow is nil
	follow func() time.Time // the other clock, or nil
	offset time.Duration    // added to the time of follow
}

func newClock(t time.Time, follow func() time.Time) *Clock {
	return &Clock{fixed: t.Round(0).UTC(), follow: follow}
}

// Now returns the node's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	if c.follow == nil {
		return c.fixed
	}
	return c.follow().Add(c.offset).Round(0).UTC()
}

// Advance moves the clock forward by d, or backward if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fixed = c.fixed.Add(d)
	c.offset += d
}

// Set moves the clock to a time.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += t.Sub(c.now())
	c.fixed = t.Round(0).UTC()
}

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

// Rate is an institution's rate to publish. Buy and Sell are decimal numbers; "" = not published.
type Rate struct {
	Institution   string         `json:"institution"`
	Currency      string         `json:"currency"`
	Buy           string         `json:"buy"`  // compra: the institution's buying price
	Sell          string         `json:"sell"` // venta: the institution's selling price
	Channel       engine.Channel `json:"channel"`
	Kind          engine.Kind    `json:"kind"`
	Source        string         `json:"source"`        // id of the source; "" = the institution's id and "-test"
	EffectiveDate string         `json:"effectiveDate"` // YYYY-MM-DD, "" = not stated
	PublishedAt   time.Time      `json:"publishedAt"`   // zero = not stated
	ExpiresAt     time.Time      `json:"expiresAt"`     // zero = after the lifetime in the catalogue, usually 26 h
}

// refreshes groups rates by source, in order of appearance. The result has one engine.Refresh for each source.
func refreshes(rates []Rate, at time.Time) ([]engine.Refresh, error) {
	var list []engine.Refresh
	for i := range rates {
		r := &rates[i]
		effective, err := parseDate(r.EffectiveDate)
		if err != nil {
			return nil, fmt.Errorf("rate %d, of %s: EffectiveDate: %w", i, r.Institution, err)
		}
		source := cmp.Or(r.Source, r.Institution+"-test")
		index := slices.IndexFunc(list, func(refresh engine.Refresh) bool { return refresh.SourceID == source })
		if index < 0 {
			index, list = len(list), append(list, engine.Refresh{SourceID: source, ObservedAt: at})
		}
		list[index].Observations = append(list[index].Observations, engine.Observation{
			InstitutionID: r.Institution, Currency: r.Currency, Channel: r.Channel, Kind: r.Kind, Buy: r.Buy, Sell: r.Sell,
			EffectiveDate: effective, PublishedAt: r.PublishedAt, ExpiresAt: r.ExpiresAt,
		})
	}
	return list, nil
}

func parseDate(text string) (engine.Date, error) {
	if text == "" {
		return 0, nil
	}
	return engine.ParseDate(text)
}

// refusalsShown is the number of refused rates in an error.
const refusalsShown = 3

// refusalError returns an error that lists the refused rates, or nil without any.
func refusalError(receipt *engine.Receipt) error {
	if len(receipt.Refused) == 0 {
		return nil
	}
	var lines []string
	for i := range receipt.Refused {
		if i == refusalsShown {
			lines = append(lines, fmt.Sprintf("and %d more", len(receipt.Refused)-i))
			break
		}
		r := &receipt.Refused[i]
		o := &r.Observation
		detail := r.Detail
		if hint := refusalHint(r.Reason); hint != "" {
			detail, _, _ = strings.Cut(detail, ";") // the rest is for operators
			detail += "; " + hint
		}
		lines = append(lines, fmt.Sprintf("%s %s %s / %s: %s: %s", o.InstitutionID, o.Currency, o.Buy, o.Sell, r.Reason, detail))
	}
	return fmt.Errorf("the node's rules refuse %d of the rates: %s", len(receipt.Refused), strings.Join(lines, "; "))
}

// refusalHint returns advice about a refused rate for the author of a test, or "".
func refusalHint(reason engine.Reason) string {
	switch reason {
	case engine.UnknownInstitution, engine.UnknownCurrency:
		return "GET /v1/institutions and /v1/currencies list the known ones; tasard mock --catalogue FILE (in Go, the option Catalogue) adds others"
	case engine.Jump, engine.OffMarket, engine.SameSides:
		return "tasard mock --lenient (in Go, the option Lenient) turns this rule off"
	}
	return ""
}

// standardFile is a seedFile in JSON: version 1 of the data set "standard". It must never change: a new version is a
// new file, with a new golden file.
//
//go:embed seeds/standard-v1.json
var standardFile []byte

type seed struct {
	name      string
	start     time.Time
	catalogue *engine.Catalogue
	refreshes []engine.Refresh
}

// seedFile is the content of a file with a data set (a seed).
type seedFile struct {
	Start        time.Time         `json:"now"`       // time at which Clock starts
	Catalogue    json.RawMessage   `json:"catalogue"` // content of a catalogue file: institutions, currencies and sources
	Publications []seedPublication `json:"said"`      // sorted by time
}

// seedPublication contains the rates that a source published at one time.
type seedPublication struct {
	Source string    `json:"source"`
	At     time.Time `json:"at"`
	Rates  []Rate    `json:"rates"`
}

// newestSeed is the newest version of the data set "standard".
const newestSeed = "standard/v1"

// standardSeed parses standardFile once. All nodes share the result, so it must not be modified.
var standardSeed = sync.OnceValues(func() (*seed, error) { return parseSeed(newestSeed, standardFile) })

func readSeed(name string) (*seed, error) {
	if name != "standard" && name != newestSeed {
		return nil, fmt.Errorf("there is no seed %q; there is %s", name, newestSeed)
	}
	return standardSeed()
}

func parseSeed(full string, data []byte) (*seed, error) {
	var file seedFile
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("seed %s: %w", full, err)
	}
	catalogue, err := new(engine.Catalogue).Extend(bytes.NewReader(file.Catalogue), full)
	if err != nil {
		return nil, fmt.Errorf("seed %s: %w", full, err)
	}
	s := &seed{name: full, start: file.Start, catalogue: catalogue}
	for i := range file.Publications {
		publication := &file.Publications[i]
		for j := range publication.Rates {
			publication.Rates[j].Source = publication.Source
		}
		list, err := refreshes(publication.Rates, publication.At)
		if err != nil {
			return nil, fmt.Errorf("seed %s: %w", full, err)
		}
		s.refreshes = append(s.refreshes, list...)
	}
	return s, nil
}

// resolve sets the catalogue and the start time unless options have set them. It returns the data set of the option
// Seed, or nil.
func (c *config) resolve() (*seed, error) {
	var s *seed
	if c.seed != "" {
		var err error
		if s, err = readSeed(c.seed); err != nil {
			return nil, err
		}
	}
	if c.catalogue == nil {
		c.catalogue = engine.DefaultCatalogue()
		if s != nil {
			c.catalogue = s.catalogue
		}
	}
	if c.extra != nil {
		var err error
		if c.catalogue, err = c.catalogue.Extend(bytes.NewReader(c.extra), c.extraName); err != nil {
			return nil, err
		}
	}
	switch {
	case !c.start.IsZero():
	case s != nil:
		c.start = s.start
	default:
		c.start = Epoch()
	}
	return s, nil
}

package actors

import (
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// Requests that a currency actor answers. The directory, which is the actor for requests about several currencies,
// answers some of them too.
type (
	ranking    = mailbox.Request[engine.RankingQuery, *engine.Page[*engine.Rate]]
	rates      = mailbox.Request[engine.RatesQuery, *engine.Page[*engine.Rate]]
	history    = mailbox.Request[engine.HistoryQuery, *engine.Page[engine.HistoryEntry]]
	quarantine = mailbox.Request[quarantineQuery, []engine.Quarantined]
)

type quarantineQuery struct{}

// currencyActor has the state of one currency. It answers reads from snapshot, an immutable copy of the state. It does
// long work on the state in jobs (mailbox.Ref.StartJob), so that it handles each message quickly.
type currencyActor struct {
	self      *mailbox.Ref
	clock     func() time.Time
	directory *mailbox.Ref
	journal   *mailbox.Ref
	hasRates  *atomic.Bool // true after a rate of any currency has been published
	latest    *latestUpdate
	freshness *freshness // how old the rates are; nil in tests
	readers   []*pagesChanged

	state    *engine.CurrencyState
	snapshot *engine.CurrencySnapshot

	view     *engine.RankedView // ranked rates of snapshot, or of an earlier snapshot; nil = no view was made yet
	rankings pageCache[engine.RankingQuery, *engine.Rate]
	rates    pageCache[engine.RatesQuery, *engine.Rate]
	history  pageCache[engine.HistoryQuery, engine.HistoryEntry] // pages that do not depend on the current time

	writes writes
}

// Receive implements mailbox.Actor.
func (c *currencyActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *forwarded[engine.RankingQuery, *engine.Rate]:
		view := c.now() // must come first, because it may clear the pages
		replyToReader(m, c.rankings.of(m.Query, view.Ranking), view.From())
	case *forwarded[engine.RatesQuery, *engine.Rate]:
		view := c.now()
		replyToReader(m, c.rates.of(m.Query, view.Rates), view.From())
	case *forwarded[engine.HistoryQuery, engine.HistoryEntry]:
		replyToReader(m, c.history.of(m.Query, c.snapshot.History), time.Time{})
	case *quarantine:
		m.Reply(c.snapshot.Quarantine(), nil)
	case *command:
		c.accept(m)
	case *decided:
		c.decided(m)
	case *commitlog.Committed:
		c.committed(m)
	case *applied:
		c.applied(m)
	case *commitlog.RemoteEvents[engine.Event]:
		c.remote(m)
	case *commitlog.SnapshotRequest:
		c.share(m)
	case *mailbox.Halt:
		c.halt(m.Err)
	}
}

// Fatal implements mailbox.Actor. A panic over a change is fatal, because the state may be half changed, or a command
// may be lost.
func (c *currencyActor) Fatal(msg mailbox.Message) bool {
	switch msg.(type) {
	case *command, *decided, *commitlog.Committed, *applied, *commitlog.RemoteEvents[engine.Event], *commitlog.SnapshotRequest, *mailbox.Halt:
		return true
	}
	return false
}

// now returns the view (ranked rates) that is valid at the current time. It makes a new view if the present one has
// expired, if making one panicked after the newest change, or if the clock was set back.
func (c *currencyActor) now() *engine.RankedView {
	view := c.snapshot.View(c.view, c.clock())
	if view != c.view {
		c.view = view
		c.rankings.clear()
		c.rates.clear()
	}
	return view
}

// publish replaces the snapshot and the view, and informs the actors that serve copies: the directory and the readers.
// It must be called before the change is acknowledged.
func (c *currencyActor) publish(update currencyUpdate) {
	c.snapshot, c.view = update.snapshot, update.view
	c.freshness.set(update.freshUntil, update.checkedAt)
	c.rankings.clear()
	c.rates.clear()
	c.history.clear()
	c.latest.post(update, c.directory)
	tellReaders(c.readers)
}

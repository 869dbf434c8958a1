package actors

import (
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/engine"
)

// The questions that a currency actor answers; the directory answers some of them for all currencies.
type (
	ranking = question[engine.RankingQuery, *engine.Page[*engine.Rate]]
	rates   = question[engine.RatesQuery, *engine.Page[*engine.Rate]]
	history = question[engine.HistoryQuery, *engine.Page[engine.HistoryEntry]]
	held    = question[heldQuery, []engine.Held]
)

// heldQuery asks for the quarantine of the actor's currency.
type heldQuery struct{}

// currencyActor owns the book of one currency. What it answers comes from the board: the book as it was
// when the last commit had been applied as a whole.
type currencyActor struct {
	self      *ref
	clock     func() time.Time
	directory *ref
	journal   *ref
	loaded    *atomic.Bool // some rate was ever published, in any currency
	latest    *latestBoard

	book  *engine.Book
	board *engine.Board

	view     *engine.View // of board; right from viewFrom until its ChangesAt
	viewFrom time.Time
	rankings pages[engine.RankingQuery, *engine.Page[*engine.Rate]]
	rates    pages[engine.RatesQuery, *engine.Page[*engine.Rate]]
	history  pages[engine.HistoryQuery, *engine.Page[engine.HistoryEntry]]

	writes writes
}

// receive is one line for each letter.
func (c *currencyActor) receive(l letter) {
	switch m := l.(type) {
	case *ranking:
		m.reply(c.ranking(m.query), nil)
	case *rates:
		m.reply(c.ratesPage(m.query), nil)
	case *history:
		m.reply(c.historyPage(m.query), nil)
	case *held:
		m.reply(c.board.Held(), nil)
	case *command:
		c.accept(m)
	case *committed:
		c.committed(m)
	case *share:
		m.hand(c.board)
	case *halt:
		c.halt(m.why)
	}
}

// vital: the book may be half changed only by what follows a commit, and a command that is not in its
// queue would be lost.
func (c *currencyActor) vital(l letter) bool {
	switch l.(type) {
	case *command, *committed, *share, *halt:
		return true
	}
	return false
}

// ranking is the cached page, or a new one.
func (c *currencyActor) ranking(q engine.RankingQuery) *engine.Page[*engine.Rate] {
	view := c.now()
	if page, ok := c.rankings.get(q); ok {
		return page
	}
	page := view.Ranking(q)
	c.rankings.put(q, page, len(page.Items))
	return page
}

func (c *currencyActor) ratesPage(q engine.RatesQuery) *engine.Page[*engine.Rate] {
	view := c.now()
	if page, ok := c.rates.get(q); ok {
		return page
	}
	page := view.Rates(q)
	c.rates.put(q, page, len(page.Items))
	return page
}

// historyPage does not depend on the time: its pages live as long as the board.
func (c *currencyActor) historyPage(q engine.HistoryQuery) *engine.Page[engine.HistoryEntry] {
	if page, ok := c.history.get(q); ok {
		return page
	}
	page := c.board.History(q)
	c.history.put(q, page, len(page.Items))
	return page
}

// now is the view of this moment. A new one is built when an expiry has passed, after a change, and when
// the clock was set back.
func (c *currencyActor) now() *engine.View {
	now := c.clock()
	if c.view == nil || outdated(now, c.viewFrom, c.view.ChangesAt()) {
		c.view, c.viewFrom = c.board.View(now), now
		c.rankings.drop()
		c.rates.drop()
	}
	return c.view
}

func outdated(now, from, changesAt time.Time) bool {
	return now.Before(from) || !changesAt.IsZero() && !now.Before(changesAt)
}

// publish makes the book's state the one that is answered from. The directory hears of it before anybody
// is told that the change is done.
func (c *currencyActor) publish() {
	c.board = c.book.Board()
	c.view = nil
	c.history.drop()
	c.latest.post(c.board, c.directory)
}

package actors

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// Requests that a reader answers.
type (
	rankings     = mailbox.Request[engine.RankingQuery, *engine.Page[*engine.Rate]]
	rates        = mailbox.Request[engine.RatesQuery, *engine.Page[*engine.Rate]]
	history      = mailbox.Request[engine.HistoryQuery, *engine.Page[engine.HistoryEntry]]
	currencies   = mailbox.Request[struct{}, *engine.Page[engine.CurrencyItem]]
	institutions = mailbox.Request[engine.InstitutionsQuery, *engine.Page[engine.InstitutionItem]]
	institution  = mailbox.Request[string, *engine.InstitutionDetail] // the query is the id
)

// board holds the newest snapshot of every currency, for all readers. A currency actor posts each snapshot before it
// acknowledges the change, so every later answer includes the change. All readers see a change at the same time. If
// each reader got a message instead, a client could see a change in one answer and miss it in the next.
type board struct {
	snapshots atomic.Pointer[[]*engine.CurrencySnapshot] // in the order of System.codes; immutable
	hasRates  atomic.Bool                                // a rate has been published
}

func newBoard(snapshots []*engine.CurrencySnapshot) *board {
	b := &board{}
	b.snapshots.Store(&snapshots)
	b.hasRates.Store(slices.ContainsFunc(snapshots, (*engine.CurrencySnapshot).HasRates))
	return b
}

// post replaces the snapshot of the currency with the given index.
func (b *board) post(currency int, snapshot *engine.CurrencySnapshot) {
	for {
		old := b.snapshots.Load()
		posted := slices.Clone(*old)
		posted[currency] = snapshot
		if b.snapshots.CompareAndSwap(old, &posted) {
			break
		}
	}
	if snapshot.HasRates() {
		b.hasRates.Store(true)
	}
}

// readerActor answers all queries of data, from a cache of pages. Each processor has its own reader, so that callers do
// not all wait for one actor.
type readerActor struct {
	clock     func() time.Time
	catalogue *engine.Catalogue
	board     *board

	snapshots *[]*engine.CurrencySnapshot // the snapshots from which market was made
	market    *engine.MarketView          // what queries read; made from snapshots
	pages     pages
}

// pageRowsMax is the maximum number of cached rows in a reader. An encoded row takes about 1 KiB. Each page counts as
// pageRowsBase additional rows.
const (
	pageRowsMax  = 8192
	pageRowsBase = 4
)

// pages is the cache of pages of one market view, by query. A page also keeps its rendered responses, so equal queries
// are rendered once. A full cache is emptied.
type pages struct {
	rows         int
	rankings     map[engine.RankingQuery]*engine.Page[*engine.Rate]
	rates        map[engine.RatesQuery]*engine.Page[*engine.Rate]
	histories    map[engine.HistoryQuery]*engine.Page[engine.HistoryEntry]
	currencies   map[struct{}]*engine.Page[engine.CurrencyItem]
	institutions map[engine.InstitutionsQuery]*engine.Page[engine.InstitutionItem]
	details      map[string]*engine.InstitutionDetail // bounded: only institutions of the catalogue
}

// Receive implements mailbox.Actor.
func (r *readerActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *rankings:
		market := r.now(m.Query.At)
		m.Query.At = 0 // so that equal queries at different times have equal keys in the cache
		m.Reply(pageOf(&r.pages, &r.pages.rankings, m.Query, market.Ranking), nil)
	case *rates:
		market := r.now(0)
		m.Reply(pageOf(&r.pages, &r.pages.rates, m.Query, market.Rates), nil)
	case *history:
		market := r.now(0)
		m.Reply(pageOf(&r.pages, &r.pages.histories, m.Query, market.History), nil)
	case *currencies:
		market := r.now(0)
		list := func(struct{}) *engine.Page[engine.CurrencyItem] { return market.Currencies() }
		m.Reply(pageOf(&r.pages, &r.pages.currencies, m.Query, list), nil)
	case *institutions:
		market := r.now(0)
		m.Reply(pageOf(&r.pages, &r.pages.institutions, m.Query, market.Institutions), nil)
	case *institution:
		m.Reply(r.institution(m.Query))
	}
}

// FailsNode implements mailbox.Actor. A panic is not fatal, because a reader only caches.
func (r *readerActor) FailsNode(mailbox.Message) bool { return false }

// RejectAll implements mailbox.Actor. It does nothing, because a reader keeps no requests.
func (r *readerActor) RejectAll(*engine.Error) {}

// now returns the market view at a time in Unix nanoseconds; 0 = the present time. It replaces an outdated view and
// drops the pages of the old one. Call it before pageOf.
func (r *readerActor) now(at int64) *engine.MarketView {
	snapshots, now := r.board.snapshots.Load(), time.Unix(0, at)
	if at == 0 {
		now = r.clock()
	}
	if r.market == nil || r.snapshots != snapshots || !r.market.ValidAt(now) {
		r.market, r.pages = nil, pages{} // so that a panic in NewMarketView leaves both empty
		r.market = engine.NewMarketView(r.catalogue, *snapshots, now)
		r.snapshots = snapshots
	}
	return r.market
}

// pageOf returns the cached page for a query. If there is none, it calls answer.
func pageOf[K comparable, T any](p *pages, of *map[K]*engine.Page[T], query K, answer func(K) *engine.Page[T]) *engine.Page[T] {
	if page, ok := (*of)[query]; ok {
		return page
	}
	page := answer(query)
	rows := len(page.Items) + pageRowsBase
	if p.rows+rows > pageRowsMax {
		*p = pages{}
	}
	if *of == nil {
		*of = map[K]*engine.Page[T]{}
	}
	p.rows += rows
	(*of)[query] = page
	return page
}

func (r *readerActor) institution(id string) (*engine.InstitutionDetail, error) {
	market := r.now(0)
	if detail, ok := r.pages.details[id]; ok {
		return detail, nil
	}
	detail, err := market.Institution(id)
	if err != nil {
		return nil, err
	}
	if r.pages.details == nil {
		r.pages.details = map[string]*engine.InstitutionDetail{}
	}
	r.pages.details[detail.ID] = detail
	return detail, nil
}

// startReaders starts count readers.
func (s *System) startReaders(count int) error {
	for range count {
		reader := &readerActor{clock: s.config.Clock, catalogue: s.config.Catalogue, board: s.board}
		ref, err := s.actors.Spawn(fmt.Sprintf("reader-%d", len(s.readers)), &s.kinds.reader, reader)
		if err != nil {
			return err
		}
		s.readers = append(s.readers, ref)
	}
	return nil
}

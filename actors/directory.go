package actors

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// The requests that only the directory answers.
type (
	currencies   = mailbox.Request[currenciesQuery, *engine.Page[engine.CurrencyItem]]
	institutions = mailbox.Request[engine.InstitutionsQuery, *engine.Page[engine.InstitutionItem]]
	institution  = mailbox.Request[institutionQuery, *engine.InstitutionDetail]
)

type (
	currenciesQuery  struct{}
	institutionQuery struct{ id string }
)

// currencyUpdate is a new snapshot of a currency and the ranked view of it.
type currencyUpdate struct {
	snapshot   *engine.CurrencySnapshot
	view       *engine.RankedView // nil if the currency made none
	freshUntil time.Time          // when its last rate expires
	checkedAt  time.Time          // when a source was last checked
}

// latestUpdate passes the newest snapshot of a currency to the directory. The mailbox of the directory has at most one
// message about it, however fast the currency changes.
type latestUpdate struct {
	index    int
	newest   atomic.Pointer[currencyUpdate]
	notified atomic.Bool
}

// currencyChanged tells the directory to load latest.newest.
type currencyChanged struct {
	mailbox.OneWay
	latest *latestUpdate
}

// post passes a snapshot to the directory. The directory answers later requests from this snapshot or a newer one.
func (l *latestUpdate) post(update currencyUpdate, directory *mailbox.Ref) {
	l.newest.Store(&update)
	if !l.notified.Swap(true) {
		directory.Send(&currencyChanged{latest: l})
	}
}

// directoryActor answers requests about several currencies from their snapshots.
type directoryActor struct {
	clock     func() time.Time
	catalogue *engine.Catalogue
	readers   [][]*pagesChanged // by currency
	snapshots []*engine.CurrencySnapshot
	views     []*engine.RankedView // newest known views of the currencies, for reuse; nil = none

	market     *engine.MarketView // of the snapshots; valid from marketFrom until its ChangesAt
	marketFrom time.Time

	currencyList       *engine.Page[engine.CurrencyItem]
	institutions       pageCache[engine.InstitutionsQuery, engine.InstitutionItem]
	institutionDetails map[string]*engine.InstitutionDetail // by ID; only known institutions, so the catalogue limits its size
	rates              pageCache[engine.RatesQuery, *engine.Rate]
	history            pageCache[engine.HistoryQuery, engine.HistoryEntry]
}

// Receive implements mailbox.Actor.
func (d *directoryActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *forwarded[currenciesQuery, engine.CurrencyItem]:
		replyToReader(m, d.currencies(), d.marketFrom)
	case *forwarded[engine.InstitutionsQuery, engine.InstitutionItem]:
		market := d.now() // must come first, because it may clear the pages
		replyToReader(m, d.institutions.of(m.Query, market.Institutions), d.marketFrom)
	case *forwarded[engine.RatesQuery, *engine.Rate]:
		market := d.now()
		replyToReader(m, d.rates.of(m.Query, market.Rates), d.marketFrom)
	case *forwarded[engine.HistoryQuery, engine.HistoryEntry]:
		market := d.now()
		replyToReader(m, d.history.of(m.Query, market.History), time.Time{})
	case *institution:
		m.Reply(d.institution(m.Query.id))
	case *quarantine:
		m.Reply(d.quarantine(), nil)
	case *slots:
		m.Reply(engine.CompletedSlots(d.snapshots), nil)
	case *currencyChanged:
		d.changed(m.latest)
	}
}

// Fatal implements mailbox.Actor.
func (d *directoryActor) Fatal(msg mailbox.Message) bool {
	_, change := msg.(*currencyChanged)
	return change
}

// Abort implements mailbox.Actor. The directory keeps no requests that it would have to reject.
func (d *directoryActor) Abort(*engine.Error) {}

// changed loads a newer snapshot. It must clear notified before that. A snapshot that is posted meanwhile is then
// either loaded now or causes another message.
func (d *directoryActor) changed(latest *latestUpdate) {
	latest.notified.Store(false)
	newest := latest.newest.Load()
	if d.views == nil {
		d.views = make([]*engine.RankedView, len(d.snapshots))
	}
	d.snapshots[latest.index] = newest.snapshot
	if newest.view != nil {
		d.views[latest.index] = newest.view
	}
	d.market = nil
	d.history.clear()
	tellReaders(d.readers[latest.index])
}

// now returns the market view that is valid now. It makes a new one if the last one is outdated.
func (d *directoryActor) now() *engine.MarketView {
	now := d.clock()
	if d.market == nil || outdated(now, d.marketFrom, d.market.ChangesAt()) {
		d.market, d.marketFrom = engine.NewMarketView(d.catalogue, d.snapshots, d.views, now), now
		d.views = slices.Clone(d.market.Views())
		d.currencyList = nil
		d.institutions.clear()
		d.institutionDetails = map[string]*engine.InstitutionDetail{}
		d.rates.clear()
	}
	return d.market
}

// outdated reports whether a view is not valid now. The view is valid from a time until changesAt (zero = no end).
func outdated(now, from, changesAt time.Time) bool {
	return now.Before(from) || !changesAt.IsZero() && !now.Before(changesAt)
}

func (d *directoryActor) currencies() *engine.Page[engine.CurrencyItem] {
	market := d.now()
	if d.currencyList == nil {
		d.currencyList = market.Currencies()
	}
	return d.currencyList
}

func (d *directoryActor) institution(id string) (*engine.InstitutionDetail, error) {
	market := d.now()
	if detail, ok := d.institutionDetails[id]; ok {
		return detail, nil
	}
	detail, err := market.Institution(id)
	if err == nil {
		d.institutionDetails[detail.ID] = detail
	}
	return detail, err
}

// quarantine returns the quarantine of all currencies, by currency.
func (d *directoryActor) quarantine() []engine.Quarantined {
	var all []engine.Quarantined
	for _, snapshot := range d.snapshots {
		all = slices.Concat(all, snapshot.Quarantine())
	}
	return all
}

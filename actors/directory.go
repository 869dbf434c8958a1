package actors

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// Requests that only the directory (directoryActor) can answer.
type (
	currencies   = mailbox.Request[currenciesQuery, *engine.Page[engine.CurrencyItem]]
	institutions = mailbox.Request[engine.InstitutionsQuery, *engine.Page[engine.InstitutionItem]]
	institution  = mailbox.Request[institutionQuery, *engine.InstitutionDetail]
)

type (
	currenciesQuery  struct{}
	institutionQuery struct{ id string }
)

// currencyUpdate is a new snapshot of a currency's state and the ranked view of its rates.
type currencyUpdate struct {
	snapshot   *engine.CurrencySnapshot
	view       *engine.RankedView // nil if making the view panicked
	freshUntil time.Time          // when all rates of the currency will have expired
	checkedAt  time.Time          // when a source of the currency was last checked
}

// latestUpdate passes the newest update of a currency to the directory. The mailbox of the directory has at most one
// currencyChanged for each currency, however often the currency changes.
type latestUpdate struct {
	index    int // index of the currency in directoryActor.snapshots
	newest   atomic.Pointer[currencyUpdate]
	notified atomic.Bool // a currencyChanged was sent but not yet handled
}

// currencyChanged tells the directory that latest.newest has an update to load.
type currencyChanged struct {
	mailbox.OneWay
	latest *latestUpdate
}

// post passes an update to the directory. The directory answers later requests from this update or a newer one.
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
	readers   [][]*pagesChanged // by currency: the messages that inform the readers (readerActor), one for each reader
	snapshots []*engine.CurrencySnapshot
	views     []*engine.RankedView // newest known view of each currency, from which market is made; nil = no view

	market     *engine.MarketView // made from all snapshots; valid from marketFrom until market.ChangesAt
	marketFrom time.Time

	currencyList       *engine.Page[engine.CurrencyItem]
	institutions       pageCache[engine.InstitutionsQuery, engine.InstitutionItem]
	institutionDetails map[string]*engine.InstitutionDetail // by ID; bounded, because it has only institutions of the catalogue
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
	case *baselines:
		m.Reply(engine.Baselines(d.snapshots), nil)
	case *currencyChanged:
		d.changed(m.latest)
	}
}

// Fatal implements mailbox.Actor.
func (d *directoryActor) Fatal(msg mailbox.Message) bool {
	_, change := msg.(*currencyChanged)
	return change
}

// Abort implements mailbox.Actor. It does nothing, because the directory keeps no requests.
func (d *directoryActor) Abort(*engine.Error) {}

// changed loads the newest update of a currency. It must clear notified before that. Otherwise an update that is posted
// after the load and before the clearing would neither be loaded nor cause another message.
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

// now returns the market view that is valid now. If there is none, it makes one and clears the pages of the previous
// view.
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

// outdated reports whether a view is not valid now. The view is valid from the time from until changesAt. A zero
// changesAt means that it does not expire.
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

// quarantine returns the quarantined observations of all currencies, by currency.
func (d *directoryActor) quarantine() []engine.Quarantined {
	var all []engine.Quarantined
	for _, snapshot := range d.snapshots {
		all = slices.Concat(all, snapshot.Quarantine())
	}
	return all
}

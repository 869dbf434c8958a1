package actors

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// The questions that only the directory answers.
type (
	currencies   = mailbox.Question[currenciesQuery, *engine.Page[engine.CurrencyItem]]
	institutions = mailbox.Question[engine.InstitutionsQuery, *engine.Page[engine.InstitutionItem]]
	institution  = mailbox.Question[institutionQuery, *engine.InstitutionDetail]
)

type (
	currenciesQuery  struct{}
	institutionQuery struct{ id string }
)

// outlook is a board and how it stood when it was made.
type outlook struct {
	board *engine.Board
	view  *engine.View // nil: not known
	until time.Time    // when its last rate expires
	seen  time.Time    // when a source was heard last
}

// latestBoard is where a currency leaves its newest board for the directory. However fast a currency
// changes, at most one message about it is under way.
type latestBoard struct {
	index  int
	newest atomic.Pointer[outlook]
	told   atomic.Bool
}

// boardChanged tells the directory to look.
type boardChanged struct {
	mailbox.OneWay
	latest *latestBoard
}

// post leaves the board. A question that is sent to the directory afterwards is answered from it, or from
// a newer one.
func (b *latestBoard) post(o outlook, directory *mailbox.Ref) {
	b.newest.Store(&o)
	if !b.told.Swap(true) {
		directory.Send(&boardChanged{latest: b})
	}
}

// directoryActor answers the questions that span currencies from the boards that the currencies handed
// over.
type directoryActor struct {
	clock     func() time.Time
	catalogue *engine.Catalogue
	boards    []*engine.Board
	views     []*engine.View // older ones of the same currencies, nil: none yet

	market     *engine.Market // of the boards; right from marketFrom until its ChangesAt
	marketFrom time.Time

	list         *engine.Page[engine.CurrencyItem]
	institutions pages[engine.InstitutionsQuery, engine.InstitutionItem]
	details      map[string]*engine.InstitutionDetail // bounded by the catalogue: only known ones are kept
	rates        pages[engine.RatesQuery, *engine.Rate]
	history      pages[engine.HistoryQuery, engine.HistoryEntry]
}

// Receive is one line for each message.
func (d *directoryActor) Receive(l mailbox.Message) {
	switch m := l.(type) {
	case *currencies:
		m.Reply(d.currencies(), nil)
	case *institutions:
		market := d.now() // first: it may drop the pages
		m.Reply(d.institutions.of(m.Query, market.Institutions), nil)
	case *institution:
		m.Reply(d.institution(m.Query.id))
	case *rates:
		market := d.now()
		m.Reply(d.rates.of(m.Query, market.Rates), nil)
	case *history:
		market := d.now()
		m.Reply(d.history.of(m.Query, market.History), nil)
	case *held:
		m.Reply(d.held(), nil)
	case *slots:
		m.Reply(engine.DoneSlots(d.boards), nil)
	case *boardChanged:
		d.changed(m.latest)
	}
}

// Fatal is mailbox.Actor: only a new board changes what the directory holds.
func (d *directoryActor) Fatal(l mailbox.Message) bool {
	_, change := l.(*boardChanged)
	return change
}

// Abort is mailbox.Actor: the directory keeps no question.
func (d *directoryActor) Abort(*engine.Error) {}

// changed takes a newer board over. It says so before it looks: a board that is left meanwhile is either
// seen now or told again.
func (d *directoryActor) changed(latest *latestBoard) {
	latest.told.Store(false)
	newest := latest.newest.Load()
	if d.views == nil {
		d.views = make([]*engine.View, len(d.boards))
	}
	d.boards[latest.index] = newest.board
	if newest.view != nil {
		d.views[latest.index] = newest.view
	}
	d.market = nil
	d.history.drop()
}

// now is the market of this moment; see currencyActor.now.
func (d *directoryActor) now() *engine.Market {
	now := d.clock()
	if d.market == nil || outdated(now, d.marketFrom, d.market.ChangesAt()) {
		d.market, d.marketFrom = engine.MarketAfter(d.catalogue, d.boards, d.views, now), now
		d.views = slices.Clone(d.market.Views())
		d.list = nil
		d.institutions.drop()
		d.details = map[string]*engine.InstitutionDetail{}
		d.rates.drop()
	}
	return d.market
}

func outdated(now, from, changesAt time.Time) bool {
	return now.Before(from) || !changesAt.IsZero() && !now.Before(changesAt)
}

func (d *directoryActor) currencies() *engine.Page[engine.CurrencyItem] {
	market := d.now()
	if d.list == nil {
		d.list = market.Currencies()
	}
	return d.list
}

func (d *directoryActor) institution(id string) (*engine.InstitutionDetail, error) {
	market := d.now()
	if detail, ok := d.details[id]; ok {
		return detail, nil
	}
	detail, err := market.Institution(id)
	if err == nil {
		d.details[detail.ID] = detail
	}
	return detail, err
}

// held is the quarantine of all currencies, by currency.
func (d *directoryActor) held() []engine.Held {
	var all []engine.Held
	for _, board := range d.boards {
		all = slices.Concat(all, board.Held())
	}
	return all
}

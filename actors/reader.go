package actors

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// readerActor answers requests from a cache of pages. There is one reader for each processor, so that callers do not
// all wait for one currency actor. The owner of a page is the actor that makes it: a currency actor or the directory.
// If the cache has no page for a request, the reader forwards the request to the owner. The owner answers the request
// and sends the page to the reader.
//
// A reader drops a page when the page expires, or when a pagesChanged message comes. A currency actor sends these
// messages before it acknowledges a change, and the directory before it answers from the new state. A reader handles
// pagesChanged before any later request. Therefore the answer to a request includes every change that was acknowledged,
// or visible to another caller, before the request.
type readerActor struct {
	self   *mailbox.Ref
	clock  func() time.Time
	index  map[string]int // index of each currency in owners
	owners []ownerPages   // the currencies, and the directory at the end

	// The currency of the newest ranking, and its index: comparing the code is faster than a lookup in index.
	ranked        string
	rankedOwner   int
	noSuchRanking *engine.RankedView // empty, for currencies that do not exist
}

// ownerPages are the cached pages of one owner.
type ownerPages struct {
	owner        *mailbox.Ref
	changes      uint64 // number of pagesChanged messages received
	rankings     pageCopies[engine.RankingQuery, *engine.Rate]
	rates        pageCopies[engine.RatesQuery, *engine.Rate]
	history      pageCopies[engine.HistoryQuery, engine.HistoryEntry]
	currencies   pageCopies[currenciesQuery, engine.CurrencyItem]
	institutions pageCopies[engine.InstitutionsQuery, engine.InstitutionItem]
}

// pageCopies are cached pages of one kind. The owner has made all of them from one view of its state.
type pageCopies[K comparable, T any] struct {
	pages pageCache[K, T]
	from  int64 // when the pages became valid, in Unix nanoseconds
	// The page that was found or added most recently, and its query. Comparing queries is faster than a lookup in pages.
	key  K
	page *engine.Page[T]
}

// forwarded is a request for which a reader has no page. The owner answers it with replyToReader.
type forwarded[K comparable, T any] struct {
	*mailbox.Request[K, *engine.Page[T]]
	reader  *mailbox.Ref
	to      func(*ownerPages) *pageCopies[K, T] // returns the cache for the page
	owner   int
	changes uint64 // ownerPages.changes when the reader forwarded the request
}

// pageCopy sends a page to a reader. The reader drops the page if a pagesChanged message came after the request was
// forwarded.
type pageCopy struct {
	mailbox.OneWay
	owner   int
	changes uint64
	keep    func(*ownerPages)
}

// IsRequest returns true, so that a full mailbox may reject a pageCopy. The page is then not cached.
func (*pageCopy) IsRequest() bool { return true }

// pagesChanged makes one reader drop the pages of a currency and of the directory. A sender reuses the message: it has
// one for each reader and currency.
type pagesChanged struct {
	mailbox.OneWay
	reader   *mailbox.Ref
	currency int
	sent     atomic.Bool // the message was sent but not yet handled
}

// Receive implements mailbox.Actor.
func (r *readerActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *ranking:
		r.rank(m)
	case *rates:
		read(r, r.ownerOf(m.Query.Currency), m, r.now(), func(p *ownerPages) *pageCopies[engine.RatesQuery, *engine.Rate] { return &p.rates })
	case *history:
		read(r, r.ownerOf(m.Query.Currency), m, r.now(), func(p *ownerPages) *pageCopies[engine.HistoryQuery, engine.HistoryEntry] { return &p.history })
	case *currencies:
		read(r, r.directory(), m, r.now(), func(p *ownerPages) *pageCopies[currenciesQuery, engine.CurrencyItem] { return &p.currencies })
	case *institutions:
		read(r, r.directory(), m, r.now(), func(p *ownerPages) *pageCopies[engine.InstitutionsQuery, engine.InstitutionItem] {
			return &p.institutions
		})
	case *pageCopy:
		if p := &r.owners[m.owner]; p.changes == m.changes {
			m.keep(p)
		}
	case *pagesChanged:
		m.sent.Store(false) // before the pages are dropped, so that a change in between sends the message again
		r.drop(m.currency)
		r.drop(r.directory())
	}
}

// Fatal implements mailbox.Actor. A panic over pagesChanged is fatal, because the reader may still have outdated pages.
func (r *readerActor) Fatal(msg mailbox.Message) bool { return !msg.IsRequest() }

// Abort implements mailbox.Actor. It does nothing, because a reader keeps no requests.
func (r *readerActor) Abort(*engine.Error) {}

func (r *readerActor) drop(owner int) {
	p := &r.owners[owner]
	*p = ownerPages{owner: p.owner, changes: p.changes + 1}
}

// now returns the present time in Unix nanoseconds.
func (r *readerActor) now() int64 { return r.clock().UnixNano() }

// directory returns the index of the directory in owners.
func (r *readerActor) directory() int { return len(r.owners) - 1 }

// ownerOf returns the index of the actor that makes the pages of a currency: the directory if it is "" or unknown.
func (r *readerActor) ownerOf(currency string) int {
	if owner, known := r.index[currency]; known {
		return owner
	}
	return r.directory()
}

// rank answers with a ranking. It reads the clock only if the query has no time.
func (r *readerActor) rank(m *ranking) {
	now := m.Query.At
	if m.Query.At = 0; now == 0 { // without a time, equal questions are equal keys
		now = r.now()
	}
	if r.ranked != m.Query.Currency {
		r.ranked, r.rankedOwner = m.Query.Currency, r.ownerOf(m.Query.Currency)
	}
	if r.rankedOwner == r.directory() {
		m.Reply(r.noSuchRanking.Ranking(m.Query), nil)
		return
	}
	read(r, r.rankedOwner, m, now, func(p *ownerPages) *pageCopies[engine.RankingQuery, *engine.Rate] { return &p.rankings })
}

// read answers a request from the cache, or forwards it to the owner of the page.
func read[K comparable, T any](
	r *readerActor, owner int, m *mailbox.Request[K, *engine.Page[T]], now int64, of func(*ownerPages) *pageCopies[K, T],
) {
	p := &r.owners[owner]
	if page := of(p).find(m.Query, now); page != nil {
		m.Reply(page, nil)
		return
	}
	p.owner.Send(&forwarded[K, T]{m, r.self, of, owner, p.changes})
}

// find returns the page for a query if the cache has it and the page is still valid, else nil.
func (c *pageCopies[K, T]) find(key K, now int64) *engine.Page[T] {
	if c.page == nil || c.key != key {
		page := c.pages.get(key)
		if page == nil {
			return nil
		}
		c.key, c.page = key, page
	}
	if changesAt := c.page.ChangesAt; now < c.from || !changesAt.IsZero() && now >= changesAt.UnixNano() {
		return nil
	}
	return c.page
}

// replyToReader answers a forwarded request with a page, and sends the page to the reader. from is when the page became
// valid.
func replyToReader[K comparable, T any](m *forwarded[K, T], page *engine.Page[T], from time.Time) {
	query, reader, to, since := m.Query, m.reader, m.to, int64(math.MinInt64)
	if !from.IsZero() {
		since = from.UnixNano()
	}
	pageMsg := &pageCopy{owner: m.owner, changes: m.changes, keep: func(p *ownerPages) { to(p).keep(query, page, since) }}
	m.Reply(page, nil)
	reader.Send(pageMsg)
}

func (c *pageCopies[K, T]) keep(key K, page *engine.Page[T], from int64) {
	if from != c.from {
		*c = pageCopies[K, T]{from: from}
	}
	c.pages.put(key, page)
	c.key, c.page = key, page
}

// tellReaders sends the pagesChanged messages to their readers. It skips those that still wait in the mailbox of the
// reader.
func tellReaders(readers []*pagesChanged) {
	for _, m := range readers {
		if !m.sent.Swap(true) {
			m.reader.Deliver(m)
		}
	}
}

// startReaders starts count readers. It also adds them to the currency actors and the directory, which send them
// pagesChanged messages.
func (s *System) startReaders(count int, directory *directoryActor, currencies []*currencyActor) error {
	empty := engine.NewCurrencyState("", s.config.Catalogue, s.config.Rules).Snapshot().View(nil, s.config.Clock())
	index := make(map[string]int, len(s.codes))
	for i, code := range s.codes {
		index[code] = i
	}
	for range count {
		reader := &readerActor{clock: s.config.Clock, index: index, owners: make([]ownerPages, len(s.codes)+1), noSuchRanking: empty}
		ref, err := s.actors.Spawn(fmt.Sprintf("reader-%d", len(s.readers)), &s.kinds.reader, reader)
		if err != nil {
			return err
		}
		reader.self = ref
		s.readers = append(s.readers, ref)
		for i, currency := range currencies {
			reader.owners[i].owner = currency.self
			currency.readers = append(currency.readers, &pagesChanged{reader: ref, currency: i})
			directory.readers[i] = append(directory.readers[i], &pagesChanged{reader: ref, currency: i})
		}
		reader.owners[len(currencies)].owner = s.directory
	}
	return nil
}

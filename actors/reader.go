package actors

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// readerActor answers callers with copies of pages that the currencies and the directory have made. There is one for
// each processor, so that callers do not all wait for the actor of one currency. It forwards a question that it has no
// page for; the owner answers it and sends the reader the page.
//
// A page is dropped when it expires, and on a pagesChanged message: from the currency before it acknowledges a change,
// and from the directory before it answers with it. A question that is sent afterwards comes after that message, so no
// caller gets an older page than was acknowledged, or given to another caller, before it asked.
type readerActor struct {
	self  *mailbox.Ref
	clock func() time.Time
	index map[string]int // of currencies, in owners
	// owners are the currencies, and last the directory.
	owners []ownerPages
}

// ownerPages are copies of the pages of one owner.
type ownerPages struct {
	owner        *mailbox.Ref
	changes      uint64 // pagesChanged messages so far
	rankings     pageCopies[engine.RankingQuery, *engine.Rate]
	rates        pageCopies[engine.RatesQuery, *engine.Rate]
	history      pageCopies[engine.HistoryQuery, engine.HistoryEntry]
	currencies   pageCopies[currenciesQuery, engine.CurrencyItem]
	institutions pageCopies[engine.InstitutionsQuery, engine.InstitutionItem]
}

// pageCopies are copies of pages of one kind, all from one view of the owner.
type pageCopies[K comparable, T any] struct {
	pages pageCache[K, T]
	from  time.Time // the pages are valid from then on
	// The last hit: comparing a question is faster than looking it up.
	key  K
	page *engine.Page[T]
}

// forwarded is a question that a reader has no page for. The owner answers it with replyToReader.
type forwarded[K comparable, T any] struct {
	*mailbox.Question[K, *engine.Page[T]]
	reader  *mailbox.Ref
	to      func(*ownerPages) *pageCopies[K, T] // where the reader keeps the page
	owner   int
	changes uint64 // ownerPages.changes when it was forwarded
}

// pageCopy carries a page to a reader.
type pageCopy struct {
	mailbox.OneWay
	owner   int
	changes uint64
	keep    func(*ownerPages)
}

// Asked makes pageCopy a message that may be refused. The next question is then forwarded as well.
func (*pageCopy) Asked() bool { return true }

// pagesChanged drops the pages of a currency and of the directory in one reader. Each sender has one for each reader
// and currency.
type pagesChanged struct {
	mailbox.OneWay
	reader   *mailbox.Ref
	currency int
	sent     atomic.Bool // but not yet handled
}

// Receive implements mailbox.Actor.
func (r *readerActor) Receive(msg mailbox.Message) {
	switch m := msg.(type) {
	case *ranking:
		read(r, m.Query.Currency, m, func(p *ownerPages) *pageCopies[engine.RankingQuery, *engine.Rate] { return &p.rankings })
	case *rates:
		read(r, m.Query.Currency, m, func(p *ownerPages) *pageCopies[engine.RatesQuery, *engine.Rate] { return &p.rates })
	case *history:
		read(r, m.Query.Currency, m, func(p *ownerPages) *pageCopies[engine.HistoryQuery, engine.HistoryEntry] { return &p.history })
	case *currencies:
		read(r, "", m, func(p *ownerPages) *pageCopies[currenciesQuery, engine.CurrencyItem] { return &p.currencies })
	case *institutions:
		read(r, "", m, func(p *ownerPages) *pageCopies[engine.InstitutionsQuery, engine.InstitutionItem] {
			return &p.institutions
		})
	case *pageCopy:
		if p := &r.owners[m.owner]; p.changes == m.changes {
			m.keep(p)
		}
	case *pagesChanged:
		m.sent.Store(false) // first: a later change sends it again
		r.drop(m.currency)
		r.drop(len(r.owners) - 1)
	}
}

// Fatal implements mailbox.Actor: a reader that might keep old pages must not go on.
func (r *readerActor) Fatal(msg mailbox.Message) bool { return !msg.Asked() }

// Abort implements mailbox.Actor: a reader keeps no questions.
func (r *readerActor) Abort(*engine.Error) {}

func (r *readerActor) drop(owner int) {
	p := &r.owners[owner]
	*p = ownerPages{owner: p.owner, changes: p.changes + 1}
}

// read answers a question about a currency, or about all currencies with "", or forwards it.
func read[K comparable, T any](
	r *readerActor, currency string, m *mailbox.Question[K, *engine.Page[T]], of func(*ownerPages) *pageCopies[K, T],
) {
	owner, known := r.index[currency]
	if !known {
		owner = len(r.owners) - 1
	}
	p := &r.owners[owner]
	if page := of(p).find(m.Query, r.clock()); page != nil {
		m.Reply(page, nil)
		return
	}
	p.owner.Send(&forwarded[K, T]{m, r.self, of, owner, p.changes})
}

// find returns the page for a question, nil if there is none that is valid now.
func (c *pageCopies[K, T]) find(key K, now time.Time) *engine.Page[T] {
	if c.page == nil || c.key != key {
		page := c.pages.get(key)
		if page == nil {
			return nil
		}
		c.key, c.page = key, page
	}
	if outdated(now, c.from, c.page.ChangesAt) {
		return nil
	}
	return c.page
}

// replyToReader answers a question with a page that is valid since from, and sends the reader the page.
func replyToReader[K comparable, T any](m *forwarded[K, T], page *engine.Page[T], from time.Time) {
	query, reader, to := m.Query, m.reader, m.to
	pageMsg := &pageCopy{owner: m.owner, changes: m.changes, keep: func(p *ownerPages) { to(p).keep(query, page, from) }}
	m.Reply(page, nil)
	reader.Send(pageMsg)
}

func (c *pageCopies[K, T]) keep(key K, page *engine.Page[T], from time.Time) {
	if !from.Equal(c.from) {
		*c = pageCopies[K, T]{from: from}
	}
	c.pages.put(key, page)
	c.key, c.page = key, page
}

// tellReaders makes readers drop pages.
func tellReaders(readers []*pagesChanged) {
	for _, m := range readers {
		if !m.sent.Swap(true) {
			m.reader.Deliver(m)
		}
	}
}

// startReaders starts readers and registers them with the currencies and the directory.
func (s *System) startReaders(count int, directory *directoryActor, currencies []*currencyActor) error {
	index := make(map[string]int, len(s.codes))
	for i, code := range s.codes {
		index[code] = i
	}
	for range count {
		reader := &readerActor{clock: s.config.Clock, index: index, owners: make([]ownerPages, len(s.codes)+1)}
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

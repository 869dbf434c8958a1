package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// quarantineMax is the maximum number of observations in one currency's quarantine, enough for ten a day for a year.
// Beyond it the oldest are dropped from the store, but stay in the log.
const quarantineMax = 4096

// contents are the quotes, history and quarantine of one currency. A CurrencySnapshot shares the quotes,
// days and quarantine, so the quoteStore copies them before a change (copy on write).
type contents struct {
	quotes           []*quote               // sorted by key; after a withdrawal a quote may have no SourceQuote
	days             []*day                 // sorted by date
	quarantine       []Quarantined          // oldest first
	slots            bySource[AnsweredSlot] // newest scheduled time of each source
	lastQuarantineID uint64
	newest           Date // newest day that ever had history
}

// quoteStore changes the contents of one currency.
type quoteStore struct {
	contents
	generation  uint64  // number of calls of share; quotes and days of an earlier generation are copied before a change
	historyDays int     // number of days of commercial history to keep, up to newest
	trimmed     Date    // commercial rows of earlier days are already dropped
	market      *market // see marketAt
}

// quote holds one QuoteKey's source quotes (the newest accepted quote of each source) and pending confirmations.
type quote struct {
	key          QuoteKey
	generation   uint64                 // quoteStore.generation when the quote was made
	sourceQuotes bySource[*SourceQuote] // immutable
	pending      bySource[PendingConfirmation]
}

// share returns the contents. The store goes on with copies of the lists that it changes in place.
func (s *quoteStore) share() contents {
	s.generation++
	shared := s.contents
	s.quotes, s.days, s.slots = slices.Clone(s.quotes), slices.Clone(s.days), slices.Clone(s.slots)
	shared.quarantine = slices.Clip(shared.quarantine) // the store may append to the array
	return shared
}

// mutableQuote returns the quote of a key, for changes.
func (s *quoteStore) mutableQuote(key QuoteKey) *quote {
	i, found := slices.BinarySearchFunc(s.quotes, key, compareQuoteKey)
	if found && s.quotes[i].generation == s.generation {
		return s.quotes[i]
	}
	if !found {
		s.quotes = slices.Insert(s.quotes, i, &quote{key: key, generation: s.generation})
		return s.quotes[i]
	}
	q := *s.quotes[i]
	q.generation, q.sourceQuotes, q.pending = s.generation, slices.Clone(q.sourceQuotes), slices.Clone(q.pending)
	s.quotes[i] = &q
	return &q
}

func compareQuoteKey(q *quote, key QuoteKey) int { return q.key.Compare(key) }

// quote returns the quote of a key, or an empty quote. The caller must not change it.
func (s *quoteStore) quote(key QuoteKey) *quote {
	if i, found := slices.BinarySearchFunc(s.quotes, key, compareQuoteKey); found {
		return s.quotes[i]
	}
	return &quote{key: key}
}

// bySource is a list with at most one item of each source, sorted by source.
type bySource[T interface{ source() string }] []T

func (q *SourceQuote) source() string        { return q.SourceID }
func (p PendingConfirmation) source() string { return p.SourceID }
func (a AnsweredSlot) source() string        { return a.SourceID }

func (l bySource[T]) search(sourceID string) (int, bool) {
	compare := func(item T, sourceID string) int { return cmp.Compare(item.source(), sourceID) }
	return slices.BinarySearchFunc(l, sourceID, compare)
}

// of returns the item of a source, or zero.
func (l bySource[T]) of(sourceID string) (item T) {
	if i, found := l.search(sourceID); found {
		item = l[i]
	}
	return item
}

// put inserts an item, or replaces the item of the same source.
func (l *bySource[T]) put(item T) {
	if i, found := l.search(item.source()); found {
		(*l)[i] = item
	} else {
		*l = slices.Insert(*l, i, item)
	}
}

// published returns the source quote to publish at a time, or nil if there are none. Of the quotes that are not stale,
// it chooses the one with the highest precedence. If all are stale, it chooses the one that expired last.
func (q *quote) published(now time.Time) *SourceQuote {
	var best *SourceQuote
	bestStale := false
	for _, candidate := range q.sourceQuotes {
		if stale := candidate.staleAt(now); best == nil || candidate.precedes(stale, best, bestStale) {
			best, bestStale = candidate, stale
		}
	}
	return best
}

// precedes reports whether q is published rather than other. stale and otherStale tell which of the two are stale.
func (q *SourceQuote) precedes(stale bool, other *SourceQuote, otherStale bool) bool {
	if stale != otherStale {
		return otherStale
	}
	if stale && !q.ExpiresAt.Equal(other.ExpiresAt) {
		return q.ExpiresAt.After(other.ExpiresAt)
	}
	return cmp.Or(
		cmp.Compare(precedence(q.Manual, q.Priority), precedence(other.Manual, other.Priority)),
		other.LastCheckedAt.Compare(q.LastCheckedAt),
		cmp.Compare(q.SourceID, other.SourceID),
	) < 0
}

// staleAt reports whether the source quote is stale at a time.
func (q *SourceQuote) staleAt(now time.Time) bool { return !now.Before(q.ExpiresAt) }

// precedence returns the precedence of a source. The smaller number takes precedence; a manual rate has the smallest.
func precedence(manual bool, priority int64) int64 {
	if manual {
		return -1
	}
	return priority
}

// accept replaces the quote of one source, and removes the source's pending confirmation.
func (q *quote) accept(next *SourceQuote) {
	q.sourceQuotes.put(next)
	q.pending = slices.DeleteFunc(q.pending, func(p PendingConfirmation) bool { return p.SourceID == next.SourceID })
}

// apply changes the store by an event, both for a new event and in a replay of the log.
func (s *quoteStore) apply(event Event) {
	switch e := event.(type) {
	case *Refreshed:
		for i := range e.Quotes {
			s.accept(&e.Origin, &e.Quotes[i], false)
		}
		for i := range e.Quarantined {
			s.addQuarantined(e.Quarantined[i])
		}
		if e.Slot.After(s.slots.of(e.SourceID).Slot) {
			s.slots.put(AnsweredSlot{e.SourceID, e.Slot, e.Currencies, e.Baseline})
		}
	case *Released:
		s.removeQuarantined(e.QuarantineID)
		s.accept(&e.Origin, &e.Quote, true)
	case *Rejected:
		s.removeQuarantined(e.QuarantineID)
	case *Withdrawn:
		s.withdraw(e)
	default:
		panic(fmt.Sprintf("engine: no rule applies an event of type %T", event))
	}
}

func (s *quoteStore) accept(from *Origin, quote *AcceptedQuote, released bool) {
	if !quote.Backfill {
		q := s.mutableQuote(quote.Key)
		s.market.removeQuote(q)
		next := q.nextSourceQuote(from, quote)
		next.Released = next.Released || released
		q.accept(next)
		s.market.addQuote(q, from.ObservedAt)
	}
	s.record(historyRow(from, quote))
}

// nextSourceQuote returns the SourceQuote of an accepted observation. An observation that repeats the prices and the
// date does not change CollectedAt.
func (q *quote) nextSourceQuote(from *Origin, quote *AcceptedQuote) *SourceQuote {
	next := &SourceQuote{
		Key: quote.Key, SourceID: from.SourceID, Buy: quote.Buy, Sell: quote.Sell,
		EffectiveDate: quote.EffectiveDate, PublishedAt: pastOnly(quote.PublishedAt, from.ObservedAt), UpstreamSource: from.UpstreamSource,
		CollectedAt: from.ObservedAt, LastCheckedAt: from.ObservedAt, ExpiresAt: quote.ExpiresAt,
		Priority: from.Priority, Manual: from.Manual,
	}
	if last := q.sourceQuotes.of(from.SourceID); last != nil && last.sameValue(quote) {
		next.CollectedAt, next.Released = last.CollectedAt, last.Released
	}
	return next
}

// pastOnly returns the time of publication that a source states, or zero if that is after the observation: the source
// has probably swapped day and month, or mistaken the year. Records of earlier versions contain such times too.
func pastOnly(publishedAt, observedAt time.Time) time.Time {
	if publishedAt.After(observedAt) {
		return time.Time{}
	}
	return publishedAt
}

func (q *SourceQuote) sameValue(quote *AcceptedQuote) bool {
	return q.Buy.Equal(quote.Buy) && q.Sell.Equal(quote.Sell) && q.EffectiveDate == quote.EffectiveDate
}

func (s *quoteStore) addQuarantined(quarantined Quarantined) {
	s.quarantine = append(s.quarantine, quarantined)
	s.lastQuarantineID = max(s.lastQuarantineID, quarantined.ID)
	if len(s.quarantine) > quarantineMax {
		s.quarantine = s.quarantine[1:]
	}
	s.addPending(&quarantined)
}

// sightingPermille is the maximum difference between two observations of the same implausible value, in thousandths.
const sightingPermille = 10

// addPending stores an implausible value, which the source can confirm by repetition (see validator.confirmed).
func (s *quoteStore) addPending(quarantined *Quarantined) {
	if quarantined.Reason != Jump && quarantined.Reason != OffMarket && quarantined.Reason != OutOfBand {
		return
	}
	key := quarantined.Observation.Key()
	if last := s.quote(key).sourceQuotes.of(quarantined.SourceID); last != nil && !quarantined.ObservedAt.After(last.LastCheckedAt) {
		return
	}
	buy, _ := parseSide(quarantined.Observation.Buy)
	sell, _ := parseSide(quarantined.Observation.Sell)
	pending := PendingConfirmation{key, quarantined.SourceID, quarantined.ObservedAt, buy, sell, quarantined.ObservedAt, 1}
	if old := s.quote(key).pending.of(quarantined.SourceID); old.Sightings > 0 && pending.ObservedAt.After(old.ObservedAt) &&
		near(old.Buy, buy, sightingPermille) && near(old.Sell, sell, sightingPermille) {
		pending.Buy, pending.Sell, pending.Since, pending.Sightings = old.Buy, old.Sell, old.Since, old.Sightings+1
	}
	s.mutableQuote(key).pending.put(pending)
}

// quarantineID returns the number of an equal observation in quarantine, so that a file that is read twice is not
// quarantined twice.
func (c *contents) quarantineID(observed *Quarantined) (uint64, bool) {
	for i := range slices.Backward(c.quarantine) {
		if q := &c.quarantine[i]; q.ObservedAt.Equal(observed.ObservedAt) && q.SourceID == observed.SourceID &&
			q.Observation.sameQuote(&observed.Observation) {
			return q.ID, true
		}
	}
	return 0, false
}

func (o *Observation) sameQuote(other *Observation) bool {
	return o.Key() == other.Key() && o.Buy == other.Buy && o.Sell == other.Sell && o.EffectiveDate == other.EffectiveDate &&
		o.PublishedAt.Equal(other.PublishedAt)
}

// indexQuarantined returns the index of an observation in quarantine, or -1.
func (c *contents) indexQuarantined(id uint64) int {
	return slices.IndexFunc(c.quarantine, func(q Quarantined) bool { return q.ID == id })
}

func (s *quoteStore) removeQuarantined(id uint64) {
	if i := s.indexQuarantined(id); i >= 0 {
		s.quarantine = slices.Concat(s.quarantine[:i], s.quarantine[i+1:]) // snapshots share the old array
	}
}

func (s *quoteStore) withdraw(e *Withdrawn) {
	value := s.quote(e.Key).sourceQuotes.of(e.SourceID)
	if !e.HistoryOnly {
		q := s.mutableQuote(e.Key)
		q.sourceQuotes = slices.DeleteFunc(q.sourceQuotes, func(s *SourceQuote) bool { return s.SourceID == e.SourceID })
		s.market.known = false
	}
	switch {
	case e.HistorySince.IsZero():
		s.withdrawRow(DateOf(e.At), e, nil, false)
	case e.HistoryOnly:
		s.withdrawRow(e.HistorySince, e, nil, true)
	default:
		for date := e.HistorySince; date <= DateOf(e.At); date++ {
			s.withdrawRow(date, e, value, true)
		}
	}
}

// withdrawRow removes the source's row of a day, or, if remove is false, lets every other value replace the row. If
// value is not nil, it leaves rows with other values unchanged.
func (s *quoteStore) withdrawRow(date Date, e *Withdrawn, value *SourceQuote, remove bool) {
	row := s.findRow(date, e.Key)
	if row == nil || row.SourceID != e.SourceID || value != nil && !(row.Buy.Equal(value.Buy) && row.Sell.Equal(value.Sell)) {
		return
	}
	if remove {
		s.removeRows(date, func(r *HistoryEntry) bool { return r == row })
		return
	}
	withdrawn := *row
	withdrawn.Precedence = precedenceWithdrawn
	s.setRow(&withdrawn)
}

// AnsweredSlot is the newest slot (scheduled time) of a source for which one currency has accepted a refresh.
type AnsweredSlot struct {
	SourceID   string
	Slot       time.Time
	Currencies int    // number of currencies in the whole refresh
	Baseline   string // Refresh.Baseline; "" if another currency stores it
}

func (e *Refreshed) setSlot(refresh *Refresh) {
	if refresh.Slot.IsZero() {
		return
	}
	e.Slot, e.Currencies = PlainUTC(refresh.Slot), max(1, refresh.currencies)
	if len(refresh.Baseline) <= BaselineBytesMax {
		e.Baseline = refresh.Baseline
	}
}

// slotAnswered reports whether the source has an accepted refresh for this slot or a later one.
func (s *quoteStore) slotAnswered(refresh *Refresh) bool {
	return !refresh.Slot.IsZero() && !refresh.Slot.After(s.slots.of(refresh.SourceID).Slot)
}

// CompletedSlots returns the newest slot of each source whose refresh was accepted by all currencies in it. Sources
// without such a slot are not in the map. After a crash, only some currencies may have accepted a refresh. The
// collector then repeats the refresh, and those currencies ignore the repetition.
func CompletedSlots(snapshots []*CurrencySnapshot) map[string]time.Time {
	bySource := map[string][]AnsweredSlot{}
	for _, snapshot := range snapshots {
		for _, slot := range snapshot.slots {
			bySource[slot.SourceID] = append(bySource[slot.SourceID], slot)
		}
	}
	completed := make(map[string]time.Time, len(bySource))
	for source, slots := range bySource {
		slices.SortFunc(slots, func(a, b AnsweredSlot) int { return b.Slot.Compare(a.Slot) })
		answered, expected := 0, 0 // currencies that accepted the newest slot, and currencies of its refresh
		for answered < len(slots) && slots[answered].Slot.Equal(slots[0].Slot) {
			expected = max(expected, slots[answered].Currencies)
			answered++
		}
		switch {
		case answered >= expected:
			completed[source] = slots[0].Slot
		case answered < len(slots):
			completed[source] = slots[answered].Slot
		}
	}
	return completed
}

// Baselines returns each source's newest Refresh.Baseline.
func Baselines(snapshots []*CurrencySnapshot) map[string]string {
	newest := map[string]AnsweredSlot{}
	for _, snapshot := range snapshots {
		for _, slot := range snapshot.slots {
			if slot.Baseline != "" && slot.Slot.After(newest[slot.SourceID].Slot) {
				newest[slot.SourceID] = slot
			}
		}
	}
	baselines := make(map[string]string, len(newest))
	for source, slot := range newest {
		baselines[source] = slot.Baseline
	}
	return baselines
}

// precedenceWithdrawn is the precedence of a history row with a withdrawn value. Every other row takes precedence over
// it.
const precedenceWithdrawn = math.MaxInt64

// day is the history of one currency on one day in Santo Domingo: rows sorted by QuoteKey.
type day struct {
	date       Date
	rows       []*HistoryEntry // immutable
	generation uint64          // quoteStore.generation when the day was made
}

func compareDay(d *day, date Date) int { return cmp.Compare(d.date, date) }

// historyDate returns the day of a value: its effective date, or else the day of its observation.
func historyDate(effective Date, observedAt time.Time) Date {
	if effective.IsZero() {
		return DateOf(observedAt)
	}
	return effective
}

func historyRow(from *Origin, quote *AcceptedQuote) *HistoryEntry {
	return &HistoryEntry{
		Date: historyDate(quote.EffectiveDate, from.ObservedAt), InstitutionID: quote.Key.Institution, Currency: from.Currency,
		Channel: quote.Key.Channel, Kind: quote.Key.Kind, Buy: quote.Buy, Sell: quote.Sell,
		SourceID: from.SourceID, DatePrecision: precisionOf(quote.EffectiveDate, pastOnly(quote.PublishedAt, from.ObservedAt)),
		ObservedAt: from.ObservedAt, Precedence: precedence(from.Manual, from.Priority),
	}
}

func (h *HistoryEntry) key() QuoteKey { return QuoteKey{h.InstitutionID, h.Channel, h.Kind} }

func (h *HistoryEntry) replaces(old *HistoryEntry) bool {
	if h.Precedence != old.Precedence {
		return h.Precedence < old.Precedence
	}
	return !h.ObservedAt.Before(old.ObservedAt) && *h != *old
}

// findRow returns the row of a quote on a day, or nil.
func (c *contents) findRow(date Date, key QuoteKey) *HistoryEntry {
	rows := c.rowsOf(date)
	if i, found := slices.BinarySearchFunc(rows, key, compareRow); found {
		return rows[i]
	}
	return nil
}

// rowsOf returns the rows of a day.
func (c *contents) rowsOf(date Date) []*HistoryEntry {
	if i, found := slices.BinarySearchFunc(c.days, date, compareDay); found {
		return c.days[i].rows
	}
	return nil
}

func compareRow(row *HistoryEntry, key QuoteKey) int { return row.key().Compare(key) }

// oldestRetained returns the first day with retained commercial rows. It depends on the newest day of history, not on a
// clock, so that a replay drops the same days.
func (s *quoteStore) oldestRetained() Date { return s.newest.AddDays(1 - s.historyDays) }

// retains reports whether rows of a day and kind are kept.
func (s *quoteStore) retains(date Date, kind Kind) bool {
	return kind == Reference || date >= s.oldestRetained()
}

// record stores a row, unless the stored row of the same quote and day takes precedence. Each quote thus has one row a
// day: the newest value of the source with the highest precedence.
func (s *quoteStore) record(row *HistoryEntry) {
	old := s.findRow(row.Date, row.key())
	if old != nil && !row.replaces(old) || !s.retains(row.Date, row.Kind) {
		return
	}
	s.setRow(row)
}

// setRow inserts or replaces the row of a quote on a day.
func (s *quoteStore) setRow(row *HistoryEntry) {
	d := s.mutableDay(row.Date)
	if i, found := slices.BinarySearchFunc(d.rows, row.key(), compareRow); found {
		d.rows[i] = row
	} else {
		d.rows = slices.Insert(d.rows, i, row)
	}
	s.newest = max(s.newest, row.Date)
}

// removeRows removes a day's rows selected by drop, and the day itself if none is left.
func (s *quoteStore) removeRows(date Date, drop func(*HistoryEntry) bool) {
	d := s.mutableDay(date)
	if d.rows = slices.DeleteFunc(d.rows, drop); len(d.rows) == 0 {
		s.days = slices.DeleteFunc(s.days, func(other *day) bool { return other == d })
	}
}

// mutableDay returns the day of a date, for changes.
func (s *quoteStore) mutableDay(date Date) *day {
	i, found := slices.BinarySearchFunc(s.days, date, compareDay)
	if found && s.days[i].generation == s.generation {
		return s.days[i]
	}
	d := &day{date: date, generation: s.generation}
	if found {
		d.rows = slices.Clone(s.days[i].rows)
		s.days[i] = d
	} else {
		s.days = slices.Insert(s.days, i, d)
	}
	return d
}

// trim drops the commercial rows that are no longer retained.
func (s *quoteStore) trim() {
	oldest := s.oldestRetained()
	start, _ := slices.BinarySearchFunc(s.days, s.trimmed, compareDay)
	end, _ := slices.BinarySearchFunc(s.days, oldest, compareDay)
	expired := func(row *HistoryEntry) bool { return !s.retains(row.Date, row.Kind) }
	for _, d := range slices.Clone(s.days[start:max(start, end)]) {
		if slices.ContainsFunc(d.rows, expired) {
			s.removeRows(d.date, expired)
		}
	}
	s.trimmed = max(s.trimmed, oldest)
}

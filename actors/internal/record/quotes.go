package record

import "github.com/tasard/tasard/engine"

// Each function names the fields of one message. Never change the number or the meaning of a field.

func (c *coder) refreshed(e *engine.Refreshed) {
	c.text(1, &e.Currency)
	c.text(2, &e.SourceID)
	c.instant(3, &e.ObservedAt)
	c.sint64(5, &e.Priority)
	c.bool(6, &e.Manual)
	c.text(7, &e.UpstreamSource)
	if c.nextField == 8 && c.arena != nil && e.Quotes == nil {
		e.Quotes = alloc(&c.arena.quotes, c.countRun())[:0]
	}
	repeated(c, 8, &e.Quotes, (*coder).acceptedQuote)
	repeated(c, 9, &e.Quarantined, (*coder).quarantined)
	c.instant(10, &e.Slot)
	c.count(12, &e.Currencies)
	c.text(13, &e.By)
}

func (c *coder) acceptedQuote(q *engine.AcceptedQuote) {
	c.text(1, &q.Key.Institution)
	c.channel(2, &q.Key.Channel)
	c.kind(3, &q.Key.Kind)
	c.decimal(4, &q.Buy)
	c.decimal(5, &q.Sell)
	c.date(6, &q.EffectiveDate)
	c.instant(7, &q.PublishedAt)
	c.instant(9, &q.ExpiresAt)
	c.bool(11, &q.Backfill)
}

// quarantined has texts as the source wrote them, perhaps cut inside a character.
func (c *coder) quarantined(h *engine.Quarantined) {
	o := &h.Observation
	c.uint64(1, &h.ID)
	c.text(2, &h.SourceID)
	c.instant(3, &h.ObservedAt)
	c.text(5, &o.InstitutionID)
	c.text(6, &o.Currency)
	c.channel(7, &o.Channel)
	c.kind(8, &o.Kind)
	c.uniqueText(9, &o.Buy)
	c.uniqueText(10, &o.Sell)
	c.date(11, &o.EffectiveDate)
	c.instant(12, &o.PublishedAt)
	c.instant(14, &o.ExpiresAt)
	c.text(16, (*string)(&h.Reason))
	c.uniqueText(17, &h.Detail)
	c.uniqueText(18, &o.Document)
}

func (c *coder) withdrawn(e *engine.Withdrawn) {
	c.text(1, &e.Currency)
	c.text(2, &e.SourceID)
	c.text(3, &e.Key.Institution)
	c.channel(4, &e.Key.Channel)
	c.kind(5, &e.Key.Kind)
	c.instant(6, &e.At)
	c.text(8, &e.By)
}

func (c *coder) released(e *engine.Released) {
	c.text(1, &e.Currency)
	c.uint64(2, &e.QuarantineID)
	c.text(3, &e.SourceID)
	c.instant(4, &e.ObservedAt)
	c.sint64(6, &e.Priority)
	c.bool(7, &e.Manual)
	c.text(8, &e.UpstreamSource)
	message(c, 9, &e.Quote, (*coder).acceptedQuote)
	c.instant(10, &e.At)
	c.text(12, &e.By)
}

func (c *coder) rejected(e *engine.Rejected) {
	c.text(1, &e.Currency)
	c.uint64(2, &e.QuarantineID)
	c.instant(3, &e.At)
	c.text(5, &e.By)
}

func (c *coder) sourceQuote(o *engine.SourceQuote) {
	c.text(1, &o.Key.Institution)
	c.channel(2, &o.Key.Channel)
	c.kind(3, &o.Key.Kind)
	c.text(4, &o.SourceID)
	c.decimal(5, &o.Buy)
	c.decimal(6, &o.Sell)
	c.date(7, &o.EffectiveDate)
	c.instant(8, &o.PublishedAt)
	c.text(10, &o.UpstreamSource)
	c.instant(11, &o.CollectedAt)
	c.instant(13, &o.LastCheckedAt)
	c.instant(15, &o.ExpiresAt)
	c.sint64(17, &o.Priority)
	c.bool(18, &o.Manual)
}

func (c *coder) pendingConfirmation(s *engine.PendingConfirmation) {
	c.text(1, &s.Key.Institution)
	c.channel(2, &s.Key.Channel)
	c.kind(3, &s.Key.Kind)
	c.text(4, &s.SourceID)
	c.instant(5, &s.ObservedAt)
	c.decimal(7, &s.Buy)
	c.decimal(8, &s.Sell)
}

func (c *coder) slot(s *engine.AnsweredSlot) {
	c.text(1, &s.SourceID)
	c.instant(2, &s.Slot)
	c.count(4, &s.Currencies)
}

// historyEntry omits the currency, which is that of its part.
func (c *coder) historyEntry(h *engine.HistoryEntry) {
	c.date(1, &h.Date)
	c.text(2, &h.InstitutionID)
	c.channel(3, &h.Channel)
	c.kind(4, &h.Kind)
	c.decimal(5, &h.Buy)
	c.decimal(6, &h.Sell)
	c.text(7, &h.SourceID)
	c.precision(8, &h.DatePrecision)
	c.instant(9, &h.ObservedAt)
	c.sint64(11, &h.Precedence)
}

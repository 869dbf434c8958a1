package record

import "github.com/tasard/tasard/engine"

// Each function lists the fields of one message. Never change the number or the meaning of a field.

func refreshedFields(c *codec, e *engine.Refreshed) {
	c.internedText(1, &e.Currency)
	c.internedText(2, &e.SourceID)
	c.instant(3, &e.ObservedAt)
	c.sint64(5, &e.Priority)
	c.bool(6, &e.Manual)
	c.internedText(7, &e.UpstreamSource)
	repeated(c, 8, &e.Quotes, acceptedQuoteFields)
	repeated(c, 9, &e.Quarantined, quarantinedFields)
	c.instant(10, &e.Slot)
	c.count(12, &e.Currencies)
	c.internedText(13, &e.By)
	c.text(14, &e.Baseline)
}

func acceptedQuoteFields(c *codec, q *engine.AcceptedQuote) {
	c.internedText(1, &q.Key.Institution)
	c.channel(2, &q.Key.Channel)
	c.kind(3, &q.Key.Kind)
	c.decimal(4, &q.Buy)
	c.decimal(5, &q.Sell)
	c.date(6, &q.EffectiveDate)
	c.instant(7, &q.PublishedAt)
	c.instant(9, &q.ExpiresAt)
	c.bool(11, &q.Backfill)
}

func quarantinedFields(c *codec, h *engine.Quarantined) {
	o := &h.Observation
	c.uint64(1, &h.ID)
	c.internedText(2, &h.SourceID)
	c.instant(3, &h.ObservedAt)
	c.internedText(5, &o.InstitutionID)
	c.internedText(6, &o.Currency)
	c.channel(7, &o.Channel)
	c.kind(8, &o.Kind)
	c.text(9, &o.Buy)
	c.text(10, &o.Sell)
	c.date(11, &o.EffectiveDate)
	c.instant(12, &o.PublishedAt)
	c.instant(14, &o.ExpiresAt)
	c.internedText(16, (*string)(&h.Reason))
	c.text(17, &h.Detail)
	c.text(18, &o.Document)
}

func withdrawnFields(c *codec, e *engine.Withdrawn) {
	c.internedText(1, &e.Currency)
	c.internedText(2, &e.SourceID)
	c.internedText(3, &e.Key.Institution)
	c.channel(4, &e.Key.Channel)
	c.kind(5, &e.Key.Kind)
	c.instant(6, &e.At)
	c.internedText(8, &e.By)
	c.date(9, &e.HistorySince)
	c.bool(10, &e.HistoryOnly)
}

func releasedFields(c *codec, e *engine.Released) {
	c.internedText(1, &e.Currency)
	c.uint64(2, &e.QuarantineID)
	c.internedText(3, &e.SourceID)
	c.instant(4, &e.ObservedAt)
	c.sint64(6, &e.Priority)
	c.bool(7, &e.Manual)
	c.internedText(8, &e.UpstreamSource)
	message(c, 9, &e.Quote, acceptedQuoteFields)
	c.instant(10, &e.At)
	c.internedText(12, &e.By)
}

func rejectedFields(c *codec, e *engine.Rejected) {
	c.internedText(1, &e.Currency)
	c.uint64(2, &e.QuarantineID)
	c.instant(3, &e.At)
	c.internedText(5, &e.By)
}

func sourceQuoteFields(c *codec, o *engine.SourceQuote) {
	c.internedText(1, &o.Key.Institution)
	c.channel(2, &o.Key.Channel)
	c.kind(3, &o.Key.Kind)
	c.internedText(4, &o.SourceID)
	c.decimal(5, &o.Buy)
	c.decimal(6, &o.Sell)
	c.date(7, &o.EffectiveDate)
	c.instant(8, &o.PublishedAt)
	c.internedText(10, &o.UpstreamSource)
	c.instant(11, &o.CollectedAt)
	c.instant(13, &o.LastCheckedAt)
	c.instant(15, &o.ExpiresAt)
	c.sint64(17, &o.Priority)
	c.bool(18, &o.Manual)
	c.bool(19, &o.Released)
}

func pendingConfirmationFields(c *codec, s *engine.PendingConfirmation) {
	c.internedText(1, &s.Key.Institution)
	c.channel(2, &s.Key.Channel)
	c.kind(3, &s.Key.Kind)
	c.internedText(4, &s.SourceID)
	c.instant(5, &s.ObservedAt)
	c.decimal(7, &s.Buy)
	c.decimal(8, &s.Sell)
	c.instant(9, &s.Since)
	c.count(11, &s.Sightings)
}

func slotFields(c *codec, s *engine.AnsweredSlot) {
	c.internedText(1, &s.SourceID)
	c.instant(2, &s.Slot)
	c.count(4, &s.Currencies)
	c.text(5, &s.Baseline)
}

// historyEntryFields omits the currency, because the surrounding part of the snapshot contains it.
func historyEntryFields(c *codec, h *engine.HistoryEntry) {
	c.date(1, &h.Date)
	c.internedText(2, &h.InstitutionID)
	c.channel(3, &h.Channel)
	c.kind(4, &h.Kind)
	c.decimal(5, &h.Buy)
	c.decimal(6, &h.Sell)
	c.internedText(7, &h.SourceID)
	c.precision(8, &h.DatePrecision)
	c.instant(9, &h.ObservedAt)
	c.sint64(11, &h.Precedence)
}

package actors

import "github.com/tasard/tasard/engine"

func refreshedRecord(e *engine.Refreshed) *RecordRefreshed {
	r := &RecordRefreshed{
		Currency: e.Currency, SourceId: e.SourceID, Priority: e.Priority, Manual: e.Manual, UpstreamSource: e.UpstreamSource,
		Currencies: int32(e.Currencies), By: e.By,
		Quotes: make([]*RecordQuoted, len(e.Quotes)), Held: make([]*RecordHeld, len(e.Held)),
	}
	r.Observed, r.ObservedNanos = instant(e.ObservedAt)
	r.Slot, r.SlotNanos = instant(e.Slot)
	for i := range e.Quotes {
		r.Quotes[i] = quotedRecord(&e.Quotes[i])
	}
	for i := range e.Held {
		r.Held[i] = heldRecord(&e.Held[i])
	}
	return r
}

func (d *decoder) refreshed(r *RecordRefreshed) *engine.Refreshed {
	e := d.room.newRefreshed()
	*e = engine.Refreshed{
		Currency: d.text(r.Currency), SourceID: d.text(r.SourceId), ObservedAt: d.instant(r.Observed, r.ObservedNanos),
		Priority: r.Priority, Manual: r.Manual, UpstreamSource: d.text(r.UpstreamSource), Slot: d.instant(r.Slot, r.SlotNanos),
		Currencies: d.count(int64(r.Currencies)), By: d.text(r.By), Quotes: d.room.newQuotes(len(r.Quotes)),
	}
	for i, quoted := range r.Quotes {
		e.Quotes[i] = d.quoted(quoted)
	}
	if len(r.Held) > 0 {
		e.Held = make([]engine.Held, len(r.Held))
	}
	for i, held := range r.Held {
		e.Held[i] = d.held(held)
	}
	return e
}

func quotedRecord(q *engine.Quoted) *RecordQuoted {
	r := &RecordQuoted{
		Institution: q.Key.Institution, Channel: channelCode(q.Key.Channel), Kind: kindCode(q.Key.Kind),
		Buy: q.Buy.String(), Sell: q.Sell.String(), EffectiveDate: int32(q.EffectiveDate), Backfill: q.Backfill,
	}
	r.Published, r.PublishedNanos = instant(q.PublishedAt)
	r.Expires, r.ExpiresNanos = instant(q.ExpiresAt)
	return r
}

func (d *decoder) quoted(r *RecordQuoted) engine.Quoted {
	return engine.Quoted{
		Key: d.key(r.Institution, r.Channel, r.Kind), Buy: d.decimal(r.Buy), Sell: d.decimal(r.Sell),
		EffectiveDate: d.date(r.EffectiveDate), PublishedAt: d.instant(r.Published, r.PublishedNanos),
		ExpiresAt: d.instant(r.Expires, r.ExpiresNanos), Backfill: r.Backfill,
	}
}

func heldRecord(h *engine.Held) *RecordHeld {
	o := &h.Observation
	r := &RecordHeld{
		Id: h.ID, SourceId: h.SourceID, Institution: o.InstitutionID, Currency: o.Currency,
		Channel: channelCode(o.Channel), Kind: kindCode(o.Kind), Buy: []byte(o.Buy), Sell: []byte(o.Sell),
		EffectiveDate: int32(o.EffectiveDate), Reason: string(h.Reason), Detail: h.Detail, Document: []byte(o.Document),
	}
	r.Observed, r.ObservedNanos = instant(h.ObservedAt)
	r.Published, r.PublishedNanos = instant(o.PublishedAt)
	r.Expires, r.ExpiresNanos = instant(o.ExpiresAt)
	return r
}

func (d *decoder) held(r *RecordHeld) engine.Held {
	return engine.Held{
		ID: r.Id, SourceID: d.text(r.SourceId), ObservedAt: d.instant(r.Observed, r.ObservedNanos),
		Observation: engine.Observation{
			InstitutionID: d.text(r.Institution), Currency: d.text(r.Currency), Channel: d.channel(r.Channel), Kind: d.kind(r.Kind),
			Buy: string(r.Buy), Sell: string(r.Sell), EffectiveDate: d.date(r.EffectiveDate),
			PublishedAt: d.instant(r.Published, r.PublishedNanos), ExpiresAt: d.instant(r.Expires, r.ExpiresNanos),
			Document: string(r.Document),
		},
		Reason: engine.Reason(d.text(r.Reason)), Detail: d.own(r.Detail),
	}
}

func withdrawnRecord(e *engine.Withdrawn) *RecordWithdrawn {
	r := &RecordWithdrawn{
		Currency: e.Currency, SourceId: e.SourceID, Institution: e.Key.Institution,
		Channel: channelCode(e.Key.Channel), Kind: kindCode(e.Key.Kind), By: e.By,
	}
	r.At, r.AtNanos = instant(e.At)
	return r
}

func (d *decoder) withdrawn(r *RecordWithdrawn) *engine.Withdrawn {
	return &engine.Withdrawn{
		Currency: d.text(r.Currency), SourceID: d.text(r.SourceId), Key: d.key(r.Institution, r.Channel, r.Kind),
		At: d.instant(r.At, r.AtNanos), By: d.text(r.By),
	}
}

func releasedRecord(e *engine.Released) *RecordReleased {
	r := &RecordReleased{
		Currency: e.Currency, HeldId: e.HeldID, SourceId: e.SourceID, Priority: e.Priority, Manual: e.Manual,
		UpstreamSource: e.UpstreamSource, Quote: quotedRecord(&e.Quote), By: e.By,
	}
	r.Observed, r.ObservedNanos = instant(e.ObservedAt)
	r.At, r.AtNanos = instant(e.At)
	return r
}

func (d *decoder) released(r *RecordReleased) *engine.Released {
	quote := r.Quote
	if quote == nil {
		quote = &RecordQuoted{}
	}
	return &engine.Released{
		Currency: d.text(r.Currency), HeldID: r.HeldId, SourceID: d.text(r.SourceId),
		ObservedAt: d.instant(r.Observed, r.ObservedNanos), Priority: r.Priority, Manual: r.Manual,
		UpstreamSource: d.text(r.UpstreamSource), Quote: d.quoted(quote), At: d.instant(r.At, r.AtNanos), By: d.text(r.By),
	}
}

func rejectedRecord(e *engine.Rejected) *RecordRejected {
	r := &RecordRejected{Currency: e.Currency, HeldId: e.HeldID, By: e.By}
	r.At, r.AtNanos = instant(e.At)
	return r
}

func (d *decoder) rejected(r *RecordRejected) *engine.Rejected {
	return &engine.Rejected{Currency: d.text(r.Currency), HeldID: r.HeldId, At: d.instant(r.At, r.AtNanos), By: d.text(r.By)}
}

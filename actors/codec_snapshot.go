package actors

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tasard/tasard/engine"
)

const (
	partItemsMax = 256     // offers, rows and so on in one part of a snapshot
	partBytesMax = 4 << 20 // of one part: 256 items of the largest kind are far below
)

// writeSnapshot writes the states as a snapshot holds them: in parts, so that neither writer nor reader
// has the whole of it in memory twice. What there is besides books writes its own parts.
func writeSnapshot(w io.Writer, boards []*engine.Board, besides ...func(*partWriter)) error {
	parts := &partWriter{to: w}
	for _, board := range boards {
		parts.book(board.State())
	}
	for _, write := range besides {
		write(parts)
	}
	parts.write(&SnapshotPart{Last: true, Parts: parts.count})
	return parts.err
}

// partWriter writes parts and keeps the first error.
type partWriter struct {
	to     io.Writer
	buffer []byte
	count  uint64
	err    error
}

// book writes at least one part, also of a book without facts.
func (w *partWriter) book(s engine.BookState) {
	part := func() *SnapshotPart { return &SnapshotPart{Currency: s.Currency, LastHeldId: s.LastHeldID} }
	w.write(part())
	for offers := range chunks(s.Offers) {
		p := part()
		p.Offers = converted(offers, offerRecord)
		w.write(p)
	}
	for suspects := range chunks(s.Suspects) {
		p := part()
		p.Suspects = converted(suspects, suspectRecord)
		w.write(p)
	}
	for rows := range chunks(s.History) {
		p := part()
		p.Rows = converted(rows, rowRecord)
		w.write(p)
	}
	for held := range chunks(s.Held) {
		p := part()
		p.Held = converted(held, heldRecord)
		w.write(p)
	}
	for slots := range chunks(s.Slots) {
		p := part()
		p.Slots = converted(slots, slotRecord)
		w.write(p)
	}
}

func (w *partWriter) write(part *SnapshotPart) {
	if w.err != nil {
		return
	}
	size := part.SizeVT()
	w.buffer = binary.AppendUvarint(w.buffer[:0], uint64(size))
	start := len(w.buffer)
	w.buffer = append(w.buffer, make([]byte, size)...)
	if _, err := part.MarshalToSizedBufferVT(w.buffer[start:]); err != nil {
		w.err = fmt.Errorf("encode snapshot: %w", err)
		return
	}
	w.count++
	if _, err := w.to.Write(w.buffer); err != nil {
		w.err = fmt.Errorf("write snapshot: %w", err)
	}
}

func chunks[T any](all []T) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for len(all) > 0 {
			n := min(len(all), partItemsMax)
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

func converted[T, R any](from []T, convert func(*T) R) []R {
	to := make([]R, len(from))
	for i := range from {
		to[i] = convert(&from[i])
	}
	return to
}

// readSnapshot reads the states that writeSnapshot wrote, each book once, in their order. What there is
// besides books is in d.ledger afterwards.
func (d *decoder) readSnapshot(r io.Reader) ([]engine.BookState, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	var states []engine.BookState
	for count := uint64(0); ; count++ {
		part, err := d.readPart(buffered)
		if err != nil {
			return nil, fmt.Errorf("read part %d of the snapshot: %w", count, err)
		}
		if part.Last {
			return states, d.end(part, count, buffered)
		}
		d.err = nil
		if part.ofLedger() {
			d.ledgerPart(part)
			if d.err != nil {
				return nil, fmt.Errorf("decode part %d of the snapshot: %w", count, d.err)
			}
			if d.passing != nil {
				d.passing(&d.ledger)
			}
			continue
		}
		if n := len(states); n == 0 || states[n-1].Currency != part.Currency {
			states = append(states, engine.BookState{Currency: d.text(part.Currency)})
		}
		d.part(&states[len(states)-1], part)
		if d.err != nil {
			return nil, fmt.Errorf("decode part %d of the snapshot: %w", count, d.err)
		}
	}
}

func (d *decoder) end(last *SnapshotPart, count uint64, rest io.Reader) error {
	if last.Parts != count {
		return fmt.Errorf("read snapshot: %d parts, its end says %d", count, last.Parts)
	}
	if n, err := rest.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return errors.New("read snapshot: bytes behind its end")
	}
	return nil
}

// readPart reads the next part, which is the decoder's own until the one after it.
func (d *decoder) readPart(r *bufio.Reader) (*SnapshotPart, error) {
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, noEOF(err)
	}
	if size > partBytesMax {
		return nil, fmt.Errorf("a part of %d bytes, at most %d", size, partBytesMax)
	}
	d.bytes = slices.Grow(d.bytes[:0], int(size))[:size]
	if _, err := io.ReadFull(r, d.bytes); err != nil {
		return nil, noEOF(err)
	}
	part := &d.piece
	part.ResetVT()
	if err := part.UnmarshalVTUnsafe(d.bytes); err != nil {
		return nil, err
	}
	if part.Requires > snapshotVersion {
		return nil, fmt.Errorf("format version %d, known up to %d: %w", part.Requires, snapshotVersion, ErrUnknownRecord)
	}
	return part, nil
}

// noEOF makes an early end an error of its own.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (d *decoder) part(state *engine.BookState, p *SnapshotPart) {
	state.LastHeldID = p.LastHeldId
	for _, r := range p.Offers {
		state.Offers = append(state.Offers, d.offer(r))
	}
	for _, r := range p.Suspects {
		state.Suspects = append(state.Suspects, d.suspect(r))
	}
	if rows := state.History; cap(rows)-len(rows) < len(p.Rows) {
		state.History = slices.Grow(rows, max(len(p.Rows), len(rows))) // twice as large: a history is long, and moved as a whole
	}
	for _, r := range p.Rows {
		state.History = append(state.History, d.row(state.Currency, r))
	}
	for _, r := range p.Held {
		state.Held = append(state.Held, d.held(r))
	}
	for _, r := range p.Slots {
		state.Slots = append(state.Slots, engine.HeardSlot{
			SourceID: d.text(r.SourceId), Slot: d.instant(r.Slot, r.SlotNanos), Currencies: d.count(int64(r.Currencies)),
		})
	}
}

func slotRecord(h *engine.HeardSlot) *SnapshotSlot {
	r := &SnapshotSlot{SourceId: h.SourceID, Currencies: int32(h.Currencies)}
	r.Slot, r.SlotNanos = instant(h.Slot)
	return r
}

func offerRecord(o *engine.Offer) *SnapshotOffer {
	r := &SnapshotOffer{
		Institution: o.Key.Institution, Channel: channelCode(o.Key.Channel), Kind: kindCode(o.Key.Kind), SourceId: o.SourceID,
		Buy: o.Buy.String(), Sell: o.Sell.String(), EffectiveDate: int32(o.EffectiveDate),
		UpstreamSource: o.UpstreamSource, Priority: o.Priority, Manual: o.Manual,
	}
	r.Published, r.PublishedNanos = instant(o.PublishedAt)
	r.Collected, r.CollectedNanos = instant(o.CollectedAt)
	r.Checked, r.CheckedNanos = instant(o.LastCheckedAt)
	r.Expires, r.ExpiresNanos = instant(o.ExpiresAt)
	return r
}

func (d *decoder) offer(r *SnapshotOffer) engine.Offer {
	return engine.Offer{
		Key: d.key(r.Institution, r.Channel, r.Kind), SourceID: d.text(r.SourceId), Buy: d.decimal(r.Buy), Sell: d.decimal(r.Sell),
		EffectiveDate: d.date(r.EffectiveDate), PublishedAt: d.instant(r.Published, r.PublishedNanos),
		UpstreamSource: d.text(r.UpstreamSource), CollectedAt: d.instant(r.Collected, r.CollectedNanos),
		LastCheckedAt: d.instant(r.Checked, r.CheckedNanos), ExpiresAt: d.instant(r.Expires, r.ExpiresNanos),
		Priority: r.Priority, Manual: r.Manual,
	}
}

func suspectRecord(s *engine.Suspect) *SnapshotSuspect {
	r := &SnapshotSuspect{
		Institution: s.Key.Institution, Channel: channelCode(s.Key.Channel), Kind: kindCode(s.Key.Kind), SourceId: s.SourceID,
		Buy: s.Buy.String(), Sell: s.Sell.String(),
	}
	r.Observed, r.ObservedNanos = instant(s.ObservedAt)
	return r
}

func (d *decoder) suspect(r *SnapshotSuspect) engine.Suspect {
	return engine.Suspect{
		Key: d.key(r.Institution, r.Channel, r.Kind), SourceID: d.text(r.SourceId),
		ObservedAt: d.instant(r.Observed, r.ObservedNanos), Buy: d.decimal(r.Buy), Sell: d.decimal(r.Sell),
	}
}

func rowRecord(h *engine.HistoryEntry) *SnapshotRow {
	r := &SnapshotRow{
		Date: int32(h.Date), Institution: h.InstitutionID, Channel: channelCode(h.Channel), Kind: kindCode(h.Kind),
		Buy: h.Buy.String(), Sell: h.Sell.String(), SourceId: h.SourceID, Precision: precisionCode(h.DatePrecision), Rank: h.Rank,
	}
	r.Observed, r.ObservedNanos = instant(h.ObservedAt)
	return r
}

func (d *decoder) row(currency string, r *SnapshotRow) engine.HistoryEntry {
	return engine.HistoryEntry{
		Date: d.date(r.Date), InstitutionID: d.text(r.Institution), Currency: currency, Channel: d.channel(r.Channel),
		Kind: d.kind(r.Kind), Buy: d.decimal(r.Buy), Sell: d.decimal(r.Sell), SourceID: d.text(r.SourceId),
		DatePrecision: d.precision(r.Precision), ObservedAt: d.instant(r.Observed, r.ObservedNanos), Rank: r.Rank,
	}
}

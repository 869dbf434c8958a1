package record

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// snapshotVersion is the newest version of snapshots that this program can read. A snapshot is a list of parts, and
// each part states its required version. Parts with accounts require version 2: a program of version 1 would skip their
// fields and accept an incomplete snapshot. Parts with grants require version 3.
const (
	snapshotVersion = 3
	accountsVersion = 2
)

const (
	partItemsMax = 256     // maximum number of list elements in a written part
	partBytesMax = 4 << 20 // maximum size of a part for the reader; partItemsMax elements need far less
	partSlotsMax = 15      // maximum number of slots in one part; each may have a large Baseline
	_            = uint(partBytesMax - partSlotsMax*(engine.BaselineBytesMax+1<<10))
)

// Snapshot is the contents of a snapshot except the accounts.
type Snapshot struct {
	Currencies        []engine.SavedCurrency // in the order of writing
	Registry          account.RegistryState
	KeyPolicy         account.KeyPolicy // the date from which API keys are required
	Grants            []account.DayGrant
	GrantsClosedUntil engine.Date   // account.DayGrants.ClosedUntil
	Monotonic         time.Duration // monotonic time of the snapshot, not earlier than that of any event in it
}

// part is one message of a snapshot. A snapshot is a list of parts, each preceded by its length as a varint. All parts
// of a currency are adjacent. The final part contains only the fields last and parts.
type part struct {
	requires    uint64               // required version
	currency    engine.SavedCurrency // a chunk of each list; without a code in a part without a currency
	parts       uint64               // number of parts before the final part
	last        bool
	accounts    [][]byte // encoded account.States
	hasRegistry bool     // the part contains what occurs once: counters of the registry, KeyPolicy and Monotonic
	state       *Snapshot
}

func partFields(c *codec, p *part) {
	c.version(&p.requires, snapshotVersion)
	currency, s := &p.currency, p.state
	c.internedText(2, &currency.Currency)
	c.uint64(3, &currency.LastQuarantineID)
	repeated(c, 4, &currency.SourceQuotes, sourceQuoteFields)
	repeated(c, 5, &currency.Pending, pendingConfirmationFields)
	repeated(c, 6, &currency.History, historyEntryFields)
	repeated(c, 7, &currency.Quarantine, quarantinedFields)
	c.uint64(8, &p.parts)
	c.bool(9, &p.last)
	c.byteStrings(10, &p.accounts)
	repeated(c, 11, &s.Registry.Addresses, addressFields)
	repeated(c, 12, &s.Registry.Sessions, sessionFields) // in the order of opening
	if !c.writing || p.hasRegistry {
		message(c, 13, s, registryFields)
	}
	repeated(c, 14, &currency.Slots, slotFields)
	repeated(c, 15, &s.Registry.SharedCodes, codeFields)
	repeated(c, 16, &s.Grants, dayGrantFields)
	c.date(17, &s.GrantsClosedUntil)
}

// SnapshotWriter writes a snapshot as a list of parts (messages), with one encoded part in memory. After an error it
// writes nothing more; End returns the error.
type SnapshotWriter struct {
	w     io.Writer
	codec codec
	count uint64
	err   error
}

// NewSnapshotWriter returns a SnapshotWriter that writes to w. Call End to complete the snapshot.
func NewSnapshotWriter(w io.Writer) *SnapshotWriter {
	return &SnapshotWriter{w: w, codec: codec{writing: true}}
}

// Currency writes the state of a currency.
func (w *SnapshotWriter) Currency(s engine.SavedCurrency) {
	write := func(lists engine.SavedCurrency) {
		lists.Currency, lists.LastQuarantineID = s.Currency, s.LastQuarantineID
		w.write(&part{currency: lists})
	}
	write(engine.SavedCurrency{})
	for quotes := range slices.Chunk(s.SourceQuotes, partItemsMax) {
		write(engine.SavedCurrency{SourceQuotes: quotes})
	}
	for pending := range slices.Chunk(s.Pending, partItemsMax) {
		write(engine.SavedCurrency{Pending: pending})
	}
	for rows := range slices.Chunk(s.History, partItemsMax) {
		write(engine.SavedCurrency{History: rows})
	}
	for quarantined := range slices.Chunk(s.Quarantine, partItemsMax) {
		write(engine.SavedCurrency{Quarantine: quarantined})
	}
	for slots := range slices.Chunk(s.Slots, partSlotsMax) {
		write(engine.SavedCurrency{Slots: slots})
	}
}

// Accounts writes accounts. Each is an encoded account.State.
func (w *SnapshotWriter) Accounts(accounts [][]byte) {
	for chunk := range slices.Chunk(accounts, partItemsMax) {
		w.write(&part{requires: accountsVersion, accounts: chunk})
	}
}

// Grants writes the grants of days, which the accounts of a shard may have used without events of their own.
func (w *SnapshotWriter) Grants(grants []account.DayGrant, closedUntil engine.Date) {
	if len(grants) > 0 || closedUntil != 0 {
		w.write(&part{requires: snapshotVersion, state: &Snapshot{Grants: grants, GrantsClosedUntil: closedUntil}})
	}
}

// Registry writes the fields Registry, KeyPolicy and Monotonic of a Snapshot.
func (w *SnapshotWriter) Registry(s Snapshot) {
	write := func(lists account.RegistryState) {
		w.write(&part{requires: accountsVersion, state: &Snapshot{Registry: lists}})
	}
	registry := s.Registry
	for addresses := range slices.Chunk(registry.Addresses, partItemsMax) {
		write(account.RegistryState{Addresses: addresses})
	}
	for sessions := range slices.Chunk(registry.Sessions, partItemsMax) {
		write(account.RegistryState{Sessions: sessions})
	}
	for codes := range slices.Chunk(registry.SharedCodes, partItemsMax) {
		write(account.RegistryState{SharedCodes: codes})
	}
	registry.Addresses, registry.Sessions, registry.SharedCodes = nil, nil, nil
	w.write(&part{requires: accountsVersion, hasRegistry: true, state: &Snapshot{Registry: registry, KeyPolicy: s.KeyPolicy, Monotonic: s.Monotonic}})
}

// End completes the snapshot. It returns the first error of all calls.
func (w *SnapshotWriter) End() error {
	w.write(&part{last: true, parts: w.count})
	return w.err
}

func (w *SnapshotWriter) write(p *part) {
	if w.err != nil {
		return
	}
	if p.state == nil {
		p.state = &Snapshot{}
	}
	w.codec.bytes = w.codec.bytes[:0]
	lengthPrefixed(&w.codec, p, partFields)
	w.count++
	if _, err := w.w.Write(w.codec.bytes); err != nil {
		w.err = fmt.Errorf("write snapshot: %w", err)
	}
}

// Snapshot reads a complete snapshot. It calls visit for each account, whose slices the next call overwrites. An error
// of visit ends reading.
func (d *Decoder) Snapshot(r io.Reader, visit func(account.State) error) (*Snapshot, error) {
	reader := &snapshotReader{src: bufio.NewReaderSize(r, 64<<10), decoder: d, visit: visit}
	for count := uint64(0); ; count++ {
		if err := reader.next(); err != nil {
			return nil, fmt.Errorf("read part %d of the snapshot: %w", count, err)
		}
		if err := reader.store(); err != nil {
			return nil, fmt.Errorf("decode part %d of the snapshot: %w", count, err)
		}
		if reader.part.last {
			return &reader.result, reader.checkEnd(count)
		}
	}
}

type snapshotReader struct {
	src     *bufio.Reader
	bytes   []byte // the encoded part
	part    part
	decoder *Decoder
	visit   func(account.State) error
	result  Snapshot
}

// next reads the next part.
func (s *snapshotReader) next() error {
	size, err := binary.ReadUvarint(s.src)
	if err != nil {
		return unexpectedEOF(err)
	}
	if size > partBytesMax {
		return fmt.Errorf("a part of %d bytes, at most %d", size, partBytesMax)
	}
	s.bytes = slices.Grow(s.bytes[:0], int(size))[:size]
	if _, err := io.ReadFull(s.src, s.bytes); err != nil {
		return unexpectedEOF(err)
	}
	s.part = part{accounts: s.part.accounts[:0], state: &s.result}
	return decode(s.decoder, s.bytes, &s.part, partFields)
}

// store stores the currency in a part, and visits the accounts.
func (s *snapshotReader) store() error {
	for _, encoded := range s.part.accounts {
		state, err := s.decoder.Account(encoded)
		if err == nil {
			err = s.visit(state)
		}
		if err != nil {
			return err
		}
	}
	p, all := &s.part.currency, s.result.Currencies
	if p.Currency == "" {
		return nil
	}
	if n := len(all); n == 0 || all[n-1].Currency != p.Currency {
		all = append(all, engine.SavedCurrency{Currency: p.Currency})
	}
	state := &all[len(all)-1]
	for i := range p.History {
		p.History[i].Currency = p.Currency
	}
	state.LastQuarantineID = p.LastQuarantineID
	state.SourceQuotes = append(state.SourceQuotes, p.SourceQuotes...)
	state.Pending = append(state.Pending, p.Pending...)
	state.History = append(state.History, p.History...)
	state.Quarantine = append(state.Quarantine, p.Quarantine...)
	state.Slots = append(state.Slots, p.Slots...)
	s.result.Currencies = all
	return nil
}

func (s *snapshotReader) checkEnd(count uint64) error {
	if s.part.parts != count {
		return fmt.Errorf("read snapshot: %d parts, want %d", count, s.part.parts)
	}
	if n, err := s.src.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return errors.New("read snapshot: bytes after the last part")
	}
	return nil
}

func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

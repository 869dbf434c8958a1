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

// Snapshot is the contents of a snapshot except accounts and e-mail addresses. A SnapshotVisitor gets these, because
// there may be a million of them.
type Snapshot struct {
	Currencies []engine.SavedCurrency // in the order of writing
	Registry   account.RegistryState  // without addresses
	KeyPolicy  account.KeyPolicy
	Grants     []account.DayGrant
	// GrantsClosedUntil is account.DayGrants.ClosedUntil.
	GrantsClosedUntil engine.Date
	Monotonic         time.Duration // monotonic time of the snapshot, not earlier than that of any event in it
}

// SnapshotVisitor gets the accounts and e-mail addresses of a snapshot. Decoder.Snapshot calls it for each part.
type SnapshotVisitor struct {
	// Accounts gets encoded accounts for Decoder.Account, valid only during the call. An error ends reading.
	Accounts  func(encoded [][]byte) error
	Addresses func(addresses []account.AddressState)
}

// Snapshot reads a complete snapshot.
func (d *Decoder) Snapshot(r io.Reader, visitor SnapshotVisitor) (*Snapshot, error) {
	reader := &snapshotReader{src: bufio.NewReaderSize(r, 64<<10), decoder: d, visitor: visitor}
	for count := uint64(0); ; count++ {
		if err := reader.next(); err != nil {
			return nil, fmt.Errorf("read part %d of the snapshot: %w", count, err)
		}
		if reader.part.last {
			return &reader.result, reader.checkEnd(count)
		}
		if err := reader.store(); err != nil {
			return nil, fmt.Errorf("decode part %d of the snapshot: %w", count, err)
		}
	}
}

type snapshotReader struct {
	src     *bufio.Reader
	bytes   []byte // the encoded part
	part    part
	decoder *Decoder
	visitor SnapshotVisitor
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
	s.part = part{accounts: s.part.accounts[:0]}
	return decode(s.decoder, s.bytes, &s.part, partFields)
}

// storeCurrency adds a part of a currency to s.result. All parts of a currency are adjacent.
func (s *snapshotReader) storeCurrency(p engine.SavedCurrency) {
	all := s.result.Currencies
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
}

// store adds the part's data to s.result, or passes it to the visitor.
func (s *snapshotReader) store() error {
	p, result := &s.part, &s.result
	if !p.isAccountPart() {
		s.storeCurrency(p.currency)
		return nil
	}
	if p.currency.Currency != "" {
		return errors.New("a part with a currency and accounts")
	}
	if len(p.accounts) > 0 {
		if err := s.visitor.Accounts(p.accounts); err != nil {
			return err
		}
	}
	if len(p.addresses) > 0 {
		s.visitor.Addresses(p.addresses)
	}
	result.Registry.Sessions = append(result.Registry.Sessions, p.sessions...)
	result.Registry.SharedCodes = append(result.Registry.SharedCodes, p.codes...)
	result.Grants, result.GrantsClosedUntil = append(result.Grants, p.grants...), max(result.GrantsClosedUntil, p.closed)
	if r := p.registry; r != nil {
		result.Registry.WrongTries, result.Registry.Codes, result.Registry.Newcomers = r.failedAttempts, r.codes, r.newcomers
		result.Registry.LastSweep, result.Registry.LastID = r.lastSweep, r.lastID
		result.KeyPolicy, result.Monotonic = r.keyPolicy, r.monotonic
	}
	return nil
}

func (s *snapshotReader) checkEnd(count uint64) error {
	if s.part.currency.Currency != "" || s.part.isAccountPart() {
		return errors.New("read snapshot: the last part has more than the part count")
	}
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

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

// Snapshot has the contents of a snapshot without the accounts and e-mail addresses. There may be a million of these,
// so a SnapshotVisitor gets them.
type Snapshot struct {
	Currencies []engine.SavedCurrency // in the order in which they were written
	Registry   account.RegistryState  // without addresses
	KeyPolicy  account.KeyPolicy
	Monotonic  time.Duration // monotonic time (account.ClockReading) of the snapshot; no event before the snapshot has a later monotonic time
}

// SnapshotVisitor has the functions that Decoder.Snapshot calls for each part with accounts or e-mail addresses. A part
// is one of the messages of which a snapshot consists.
type SnapshotVisitor struct {
	// Accounts gets encoded accounts for Decoder.Account. They are valid only during the call. An error ends reading.
	Accounts  func(encoded [][]byte) error
	Addresses func(addresses []account.AddressState)
}

// Snapshot reads a snapshot, which must be complete.
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

// next reads the next part. It appends the lists of a currency directly to s.result.
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
	s.part = part{currencyState: s.state, accounts: s.part.accounts[:0]}
	return decode(s.decoder, s.bytes, &s.part, (*codec).part)
}

// state returns the element of s.result for a currency. Because the parts of a currency follow each other, it is the
// last element or a new one.
func (s *snapshotReader) state(currency string) *engine.SavedCurrency {
	if n := len(s.result.Currencies); n == 0 || s.result.Currencies[n-1].Currency != currency {
		s.result.Currencies = append(s.result.Currencies, engine.SavedCurrency{Currency: currency})
	}
	return &s.result.Currencies[len(s.result.Currencies)-1]
}

// store adds the data of the part that next has not added to s.result, or passes it to the visitor.
func (s *snapshotReader) store() error {
	p, result := &s.part, &s.result
	if !p.isAccountPart() {
		state := s.state(p.currency)
		if p.state != nil && p.state != state {
			return errors.New("a currency code after its lists")
		}
		state.LastQuarantineID = p.lastQuarantineID
		return nil
	}
	if p.state != nil {
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
	if r := p.registry; r != nil {
		result.Registry.WrongTries, result.Registry.Codes, result.Registry.Newcomers = r.failedAttempts, r.codes, r.newcomers
		result.Registry.LastSweep, result.Registry.LastID = r.lastSweep, r.lastID
		result.KeyPolicy, result.Monotonic = r.keyPolicy, r.monotonic
	}
	return nil
}

func (s *snapshotReader) checkEnd(count uint64) error {
	if s.part.state != nil || s.part.isAccountPart() {
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

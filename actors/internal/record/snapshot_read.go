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

// Snapshot is the contents of a snapshot without accounts and addresses, of which there may be a million.
type Snapshot struct {
	Currencies []engine.SavedCurrency // in the order in which they were written
	Registry   account.RegistryState  // without addresses
	KeyPolicy  account.KeyPolicy
	Steady     time.Duration // not before any event in the snapshot
}

// SnapshotVisitor receives accounts and addresses, part by part.
type SnapshotVisitor struct {
	Accounts  func(all [][]byte) error // valid during the call, each for Decoder.Account; an error ends reading
	Addresses func(some []account.AddressState)
}

// Snapshot decodes an output of SnapshotWriter.
func (d *Decoder) Snapshot(r io.Reader, visitor SnapshotVisitor) (*Snapshot, error) {
	from := &snapshotReader{src: bufio.NewReaderSize(r, 64<<10), decoder: d, visitor: visitor}
	for count := uint64(0); ; count++ {
		if err := from.next(); err != nil {
			return nil, fmt.Errorf("read part %d of the snapshot: %w", count, err)
		}
		if from.part.last {
			return &from.result, from.checkEnd(count)
		}
		if err := from.store(); err != nil {
			return nil, fmt.Errorf("decode part %d of the snapshot: %w", count, err)
		}
	}
}

// snapshotReader reads one snapshot.
type snapshotReader struct {
	src     *bufio.Reader
	bytes   []byte // of the part
	part    part
	decoder *Decoder
	visitor SnapshotVisitor
	result  Snapshot
}

// next reads the next part. Lists of a currency are appended to its state.
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
	return decode(s.decoder, s.bytes, &s.part, (*coder).part)
}

// state returns the state of a currency: the last one, or a new one.
func (s *snapshotReader) state(currency string) *engine.SavedCurrency {
	if n := len(s.result.Currencies); n == 0 || s.result.Currencies[n-1].Currency != currency {
		s.result.Currencies = append(s.result.Currencies, engine.SavedCurrency{Currency: currency})
	}
	return &s.result.Currencies[len(s.result.Currencies)-1]
}

// store adds the contents of the part to the result.
func (s *snapshotReader) store() error {
	p, found := &s.part, &s.result
	if !p.isAccountPart() {
		book := s.state(p.currency)
		if p.state != nil && p.state != book {
			return errors.New("a currency code after its lists")
		}
		book.LastQuarantineID = p.lastQuarantineID
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
	found.Registry.Sessions = append(found.Registry.Sessions, p.sessions...)
	found.Registry.SharedCodes = append(found.Registry.SharedCodes, p.codes...)
	if r := p.registry; r != nil {
		found.Registry.WrongTries, found.Registry.CodesIssued, found.Registry.LastSweep, found.Registry.LastID = r.wrong, r.codes, r.swept, r.lastID
		found.KeyPolicy, found.Steady = r.keyPolicy, r.steady
	}
	return nil
}

func (s *snapshotReader) checkEnd(count uint64) error {
	if s.part.state != nil || s.part.isAccountPart() {
		return errors.New("read snapshot: more than a number in the last part")
	}
	if s.part.parts != count {
		return fmt.Errorf("read snapshot: %d parts, want %d", count, s.part.parts)
	}
	if n, err := s.src.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return errors.New("read snapshot: bytes after the last part")
	}
	return nil
}

// unexpectedEOF turns io.EOF into io.ErrUnexpectedEOF.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

package record

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

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

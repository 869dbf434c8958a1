package actors

import (
	"errors"
	"fmt"
	"io"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// errNoCopy answers for a journal that is no log in a directory.
var errNoCopy = errors.New("this journal can't be copied")

// Backup writes the state of this moment to w as wal.Log.Backup does: everything that was acknowledged before the call is in it.
// Questions and changes go on meanwhile. Close waits for it; what should not wait ends it through Pace.
func (s *System) Backup(w io.Writer, o wal.BackupOptions) (wal.BackupInfo, error) {
	if err := s.join(); err != nil {
		return wal.BackupInfo{}, err
	}
	defer s.calls.leave()
	local, ok := s.journal.(interface {
		Backup(io.Writer, wal.BackupOptions) (wal.BackupInfo, error)
	})
	if !ok {
		return wal.BackupInfo{}, errNoCopy
	}
	if o.Clock == nil {
		o.Clock = s.config.Clock
	}
	return local.Backup(w, o)
}

// Holdings is what a backup amounts to.
type Holdings struct {
	Accounts int
	Rates    int // quotes that have a word of some source, also an expired one
	Days     int // rows of daily history
}

// Survey reads a snapshot and the records behind it as a start does, and counts. Every record is decoded, so one of a kind that
// this program does not know is found (ErrUnknownRecord). Of accounts it keeps nothing but the number: its memory is that of the
// books, however many accounts there are.
type Survey struct {
	decoder  *record.Decoder
	books    map[string]*engine.Book
	accounts int
	covered  uint64 // sequence of the snapshot
}

// NewSurvey is one of nothing.
func NewSurvey() *Survey {
	return &Survey{decoder: record.NewDecoder(), books: map[string]*engine.Book{}}
}

// pass checks and counts accounts of a snapshot.
func (s *Survey) pass(accounts [][]byte) error {
	for _, account := range accounts {
		if _, err := s.decoder.Skim(account); err != nil {
			return err
		}
	}
	s.accounts += len(accounts)
	return nil
}

// Snapshot takes what a snapshot holds. It comes before all records.
func (s *Survey) Snapshot(sequence uint64, payload io.Reader) (err error) {
	defer recovered(&err)
	found, err := s.decoder.Snapshot(payload, record.SnapshotVisitor{Accounts: s.pass, Addresses: func([]account.AddressState) {}})
	if err != nil {
		return fmt.Errorf("read the snapshot at record %d: %w", sequence, err)
	}
	for _, state := range found.Books {
		s.books[state.Currency] = engine.Restore(state, engine.DefaultCatalogue(), engine.DefaultRules())
	}
	s.covered = sequence
	return nil
}

// Record takes the next record. Those that the snapshot covers are decoded and no more.
func (s *Survey) Record(sequence uint64, data []byte) (err error) {
	defer recovered(&err)
	events, err := s.decoder.Events(data, nil)
	if err != nil {
		return fmt.Errorf("record %d: %w", sequence, err)
	}
	if sequence <= s.covered {
		return nil
	}
	for _, event := range events {
		switch e := event.(type) {
		case engine.Event:
			s.book(e.CurrencyCode()).Apply(e)
		case *account.Created:
			s.accounts++
		}
	}
	return nil
}

func (s *Survey) book(code string) *engine.Book {
	book, ok := s.books[code]
	if !ok {
		book = engine.NewBook(code, engine.DefaultCatalogue(), engine.DefaultRules())
		s.books[code] = book
	}
	return book
}

// Visitor shows the survey what a backup has.
func (s *Survey) Visitor() wal.BackupVisitor {
	return wal.BackupVisitor{Snapshot: s.Snapshot, Record: s.Record}
}

// Holdings counts what came.
func (s *Survey) Holdings() Holdings {
	h := Holdings{Accounts: s.accounts}
	for _, book := range s.books {
		state := book.State()
		quotes := map[engine.QuoteKey]bool{}
		for i := range state.Offers {
			quotes[state.Offers[i].Key] = true
		}
		h.Rates += len(quotes)
		h.Days += len(state.History)
	}
	return h
}

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

// errNoBackup is returned if the journal is not a log in a directory of this node (wal.Log).
var errNoBackup = errors.New("this journal can't be copied")

// Backup writes a copy of the journal to w; see wal.Log.Backup. The copy has every change that was acknowledged before
// the call. Reads and changes go on meanwhile. Close waits until Backup returns. If o.Throttle returns an error, Backup
// ends early.
func (s *System) Backup(w io.Writer, o wal.BackupOptions) (wal.BackupInfo, error) {
	if err := s.beginCall(); err != nil {
		return wal.BackupInfo{}, err
	}
	defer s.calls.leave()
	local, ok := s.log.Journal.(interface {
		Backup(io.Writer, wal.BackupOptions) (wal.BackupInfo, error)
	})
	if !ok {
		return wal.BackupInfo{}, errNoBackup
	}
	if o.Clock == nil {
		o.Clock = s.config.Clock
	}
	return local.Backup(w, o)
}

// BackupContents counts the contents of a backup.
type BackupContents struct {
	Accounts    int
	Rates       int // distinct rates, each counted once if several sources give it; expired ones included
	HistoryRows int // rows of daily history
}

// BackupCounter counts the contents of a backup. A backup has a snapshot of the state, and records of changes. It
// decodes every record, so it also detects a record of an unknown kind (ErrUnknownRecord). It keeps only the number of
// accounts, not the accounts.
type BackupCounter struct {
	decoder          *record.Decoder
	states           map[string]*engine.CurrencyState
	accounts         int
	snapshotSequence uint64
}

// NewBackupCounter returns an empty counter.
func NewBackupCounter() *BackupCounter {
	return &BackupCounter{decoder: record.NewDecoder(), states: map[string]*engine.CurrencyState{}}
}

// checkAccounts decodes and counts accounts of a snapshot. It leaves texts, such as names of API keys, empty, because
// this is faster.
func (s *BackupCounter) checkAccounts(accounts [][]byte) error {
	for _, account := range accounts {
		if _, err := s.decoder.AccountWithoutText(account); err != nil {
			return err
		}
	}
	s.accounts += len(accounts)
	return nil
}

// Snapshot reads the snapshot of a backup. It must be called before Record.
func (s *BackupCounter) Snapshot(sequence uint64, payload io.Reader) (err error) {
	defer recovered(&err)
	// The e-mail addresses of logins are decoded but not counted.
	snapshot, err := s.decoder.Snapshot(payload, record.SnapshotVisitor{Accounts: s.checkAccounts, Addresses: func([]account.AddressState) {}})
	if err != nil {
		return fmt.Errorf("read the snapshot at record %d: %w", sequence, err)
	}
	for _, saved := range snapshot.Currencies {
		s.states[saved.Currency] = engine.RestoreCurrencyState(saved, engine.DefaultCatalogue(), engine.DefaultRules())
	}
	s.snapshotSequence = sequence
	return nil
}

// Record reads the next record. If the snapshot includes the record, Record only decodes it.
func (s *BackupCounter) Record(sequence uint64, data []byte) (err error) {
	defer recovered(&err)
	events, err := s.decoder.Events(data, nil)
	if err != nil {
		return fmt.Errorf("record %d: %w", sequence, err)
	}
	if sequence <= s.snapshotSequence {
		return nil
	}
	for _, event := range events {
		switch e := event.(type) {
		case engine.Event:
			s.state(e.CurrencyCode()).Apply(e)
		case *account.Created:
			s.accounts++
		}
	}
	return nil
}

// state returns the state of a currency, and creates it if necessary. The default catalogue has the known institutions,
// currencies and sources.
func (s *BackupCounter) state(code string) *engine.CurrencyState {
	state, ok := s.states[code]
	if !ok {
		state = engine.NewCurrencyState(code, engine.DefaultCatalogue(), engine.DefaultRules())
		s.states[code] = state
	}
	return state
}

// Visitor returns a visitor that passes the contents of a backup to the counter.
func (s *BackupCounter) Visitor() wal.BackupVisitor {
	return wal.BackupVisitor{Snapshot: s.Snapshot, Record: s.Record}
}

// Contents returns the counts.
func (s *BackupCounter) Contents() BackupContents {
	contents := BackupContents{Accounts: s.accounts}
	for _, state := range s.states {
		saved := state.Saved()
		quotes := map[engine.QuoteKey]bool{}
		for i := range saved.SourceQuotes {
			quotes[saved.SourceQuotes[i].Key] = true
		}
		contents.Rates += len(quotes)
		contents.HistoryRows += len(saved.History)
	}
	return contents
}

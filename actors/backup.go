package actors

import (
	"fmt"
	"io"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/wal"
)

// Backup takes a snapshot now and writes it to w; see wal.WriteBackup. The snapshot contains every change acknowledged
// before the call. Reads and changes continue meanwhile.
func (s *System) Backup(w io.Writer, program string) (wal.BackupInfo, error) {
	state, err := s.snapshot()
	if err != nil {
		return wal.BackupInfo{}, err
	}
	info := wal.BackupInfo{Program: program, TakenAt: s.config.Clock().UTC(), Sequence: state.Sequence}
	return info, wal.WriteBackup(w, info, state.Write)
}

// backup writes a backup for another node.
func (s *System) backup(w io.Writer) error {
	_, err := s.Backup(w, "")
	return err
}

// BackupContents counts the contents of a backup.
type BackupContents struct {
	Accounts    int
	Rates       int // distinct rates, including expired ones; a rate from several sources counts once
	HistoryRows int // rows of daily history
}

// CountBackup decodes the state in a backup and counts its contents. sequence is the number of the last record in the
// state. The accounts are not kept in memory.
func CountBackup(sequence uint64, state io.Reader) (c BackupContents, err error) {
	if sequence == 0 {
		return c, nil
	}
	defer recovered(&err)
	snapshot, err := new(record.Decoder).Snapshot(state, func(account.State) error { c.Accounts++; return nil })
	if err != nil {
		return c, fmt.Errorf("read the state after record %d: %w", sequence, err)
	}
	for _, currency := range snapshot.Currencies {
		quotes := map[engine.QuoteKey]bool{}
		for i := range currency.SourceQuotes {
			quotes[currency.SourceQuotes[i].Key] = true
		}
		c.Rates += len(quotes)
		c.HistoryRows += len(currency.History)
	}
	return c, nil
}

// States returns the newest durable state of each currency, by code.
func (s *System) States() ([]engine.SavedCurrency, error) {
	if err := s.available(); err != nil {
		return nil, err
	}
	var states []engine.SavedCurrency
	for _, snapshot := range *s.board.snapshots.Load() {
		states = append(states, snapshot.Saved())
	}
	return states, nil
}

// snapshot returns the states of all currencies and accounts after the same record. They do not change any more, so
// Close does not wait for their use.
func (s *System) snapshot() (*commitlog.StateSnapshot, error) {
	if err := s.beginCall(); err != nil {
		return nil, err
	}
	defer s.calls.leave()
	q := mailbox.NewRequest[struct{}, *commitlog.StateSnapshot](struct{}{})
	s.log.Ref.Send(q)
	return q.Wait(s.config.WriteTimeout)
}

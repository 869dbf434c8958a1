package actors

import (
	"context"
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
// before the call. Reads and changes continue meanwhile. Close waits for Backup.
func (s *System) Backup(w io.Writer, program string) (wal.BackupInfo, error) {
	if err := s.beginCall(); err != nil {
		return wal.BackupInfo{}, err
	}
	defer s.calls.leave()
	state, err := s.snapshot(true)
	if err != nil {
		return wal.BackupInfo{}, err
	}
	info := wal.BackupInfo{Program: program, TakenAt: s.config.Clock().UTC(), Sequence: state.Sequence}
	return info, wal.WriteBackup(w, info, state.Write)
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

// Export calls visit with the state of each currency, by code, all after the same record of the journal. It returns the
// first error of visit unchanged. Changes continue meanwhile.
func (s *System) Export(ctx context.Context, visit func(engine.SavedCurrency) error) error {
	if err := s.beginCall(); err != nil {
		return err
	}
	defer s.calls.leave()
	state, err := s.snapshot(false)
	if err != nil {
		return err
	}
	for _, snapshot := range state.Currencies {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(snapshot.Saved()); err != nil {
			return err
		}
	}
	return nil
}

// States returns the states that Export visits.
func (s *System) States() ([]engine.SavedCurrency, error) {
	var states []engine.SavedCurrency
	err := s.Export(context.Background(), func(state engine.SavedCurrency) error {
		states = append(states, state)
		return nil
	})
	return states, err
}

// snapshot returns the states of all currencies after the same record, and of all accounts if full is true.
func (s *System) snapshot(full bool) (*commitlog.StateSnapshot, error) {
	q := mailbox.NewRequest[bool, *commitlog.StateSnapshot](full)
	s.log.Ref.Send(q)
	return q.Wait(s.config.WriteTimeout)
}

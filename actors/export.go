package actors

import (
	"context"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

// Export calls visit with the state of each currency, by code. All states include the same records of the journal.
// Export returns the first error of visit unchanged. Changes go on meanwhile.
func (s *System) Export(ctx context.Context, visit func(engine.SavedCurrency) error) error {
	snapshots, err := s.snapshots()
	if err != nil {
		return err
	}
	for _, snapshot := range snapshots {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(snapshot.Saved()); err != nil {
			return err
		}
	}
	return nil
}

// States returns all states that Export passes to its function visit.
func (s *System) States() ([]engine.SavedCurrency, error) {
	var states []engine.SavedCurrency
	err := s.Export(context.Background(), func(state engine.SavedCurrency) error {
		states = append(states, state)
		return nil
	})
	return states, err
}

// snapshots returns a snapshot of each currency. All snapshots include the same records of the journal.
func (s *System) snapshots() ([]*engine.CurrencySnapshot, error) {
	if err := s.beginCall(); err != nil {
		return nil, err
	}
	defer s.calls.leave()
	q := mailbox.NewRequest[struct{}, *commitlog.StateSnapshot](struct{}{})
	s.log.Ref.Send(q)
	c, err := q.Wait(s.config.WriteTimeout)
	if err != nil {
		return nil, err
	}
	return c.Currencies, nil
}

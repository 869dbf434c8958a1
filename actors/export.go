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

// States returns all states that Export passes to its function visit.
func (s *System) States() ([]engine.SavedCurrency, error) {
	var states []engine.SavedCurrency
	err := s.Export(context.Background(), func(state engine.SavedCurrency) error {
		states = append(states, state)
		return nil
	})
	return states, err
}

// snapshot returns the states of all currencies, and of all accounts if full is true, after one record of the journal.
func (s *System) snapshot(full bool) (*commitlog.StateSnapshot, error) {
	q := mailbox.NewRequest[bool, *commitlog.StateSnapshot](full)
	s.log.Ref.Send(q)
	return q.Wait(s.config.WriteTimeout)
}

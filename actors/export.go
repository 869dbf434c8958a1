package actors

import (
	"context"

	"github.com/tasard/tasard/actors/internal/commitlog"
	"github.com/tasard/tasard/actors/mailbox"
	"github.com/tasard/tasard/engine"
)

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

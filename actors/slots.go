package actors

import (
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/mailbox"
)

type slots = mailbox.Request[slotsQuery, map[string]time.Time]

type slotsQuery struct{}

type baselines = mailbox.Request[baselinesQuery, map[string]string]

type baselinesQuery struct{}

// Slots returns for each source the newest slot whose rates were all accepted; see engine.CompletedSlots. A slot is a
// scheduled time at which the source is fetched. The records of these rates are durable.
func (s *System) Slots() (map[string]time.Time, error) {
	if err := s.available(); err != nil {
		return nil, err
	}
	return s.requestPools.slots.Ask(s.directory, slotsQuery{}, accounts.AskTimeout)
}

// Baselines returns for each source the durable Refresh.Baseline of its newest slot.
func (s *System) Baselines() (map[string]string, error) {
	if err := s.available(); err != nil {
		return nil, err
	}
	return s.requestPools.baselines.Ask(s.directory, baselinesQuery{}, accounts.AskTimeout)
}

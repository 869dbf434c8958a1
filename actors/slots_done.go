package actors

import (
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/actors/mailbox"
)

// slots asks for engine.CompletedSlots of all currencies.
type slots = mailbox.Request[slotsQuery, map[string]time.Time]

type slotsQuery struct{}

// Slots returns for each source the scheduled slot up to which it is done; see engine.CompletedSlots. All of it is
// durable.
func (s *System) Slots() (map[string]time.Time, error) {
	if err := s.available(); err != nil {
		return nil, err
	}
	return s.requestPools.slots.Ask(s.directory, slotsQuery{}, accounts.AskTimeout)
}

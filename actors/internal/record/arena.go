package record

import (
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Arena is memory for the events of one batch of a replay, of those kinds that a log has most of. Danger: when it is emptied its events
// are given away again, so whoever applies an event keeps nothing of it but copies. The zero value is ready.
type Arena struct {
	refreshed []engine.Refreshed
	quotes    []engine.AcceptedQuote
	leased    []account.Leased
}

// arenaMin is how many events of a kind a piece of memory is for.
const arenaMin = 512

// Reset gives the memory of all events away again.
func (m *Arena) Reset() {
	m.refreshed, m.quotes, m.leased = m.refreshed[:0], m.quotes[:0], m.leased[:0]
}

func (m *Arena) newRefreshed() *engine.Refreshed {
	e := &alloc(&m.refreshed, 1)[0]
	*e = engine.Refreshed{}
	return e
}

func (m *Arena) newLeased() *account.Leased {
	e := &alloc(&m.leased, 1)[0]
	*e = account.Leased{}
	return e
}

// alloc takes n from a list. A list without room is replaced, not moved: events point into it.
func alloc[T any](list *[]T, n int) []T {
	used := len(*list)
	if cap(*list)-used < n {
		*list, used = make([]T, 0, max(n, 2*cap(*list), arenaMin)), 0
	}
	*list = (*list)[:used+n]
	return (*list)[used : used+n : used+n]
}

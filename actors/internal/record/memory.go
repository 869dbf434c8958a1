package record

import (
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Memory is memory for the events of one batch of a replay, of those kinds that a log has most of. Danger: when it is emptied its events
// are given away again, so whoever applies an event keeps nothing of it but copies. The zero value is ready.
type Memory struct {
	refreshed []engine.Refreshed
	quotes    []engine.Quoted
	leased    []account.Leased
}

// memoryMin is how many events of a kind a piece of memory is for.
const memoryMin = 512

// Empty gives the memory of all events away again.
func (m *Memory) Empty() {
	m.refreshed, m.quotes, m.leased = m.refreshed[:0], m.quotes[:0], m.leased[:0]
}

func (m *Memory) newRefreshed() *engine.Refreshed {
	e := &take(&m.refreshed, 1)[0]
	*e = engine.Refreshed{}
	return e
}

func (m *Memory) newLeased() *account.Leased {
	e := &take(&m.leased, 1)[0]
	*e = account.Leased{}
	return e
}

// take takes n from a list. A list without room is replaced, not moved: events point into it.
func take[T any](list *[]T, n int) []T {
	used := len(*list)
	if cap(*list)-used < n {
		*list, used = make([]T, 0, max(n, 2*cap(*list), memoryMin)), 0
	}
	*list = (*list)[:used+n]
	return (*list)[used : used+n : used+n]
}

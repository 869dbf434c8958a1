package record

import (
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Arena is memory for the events of one batch of a replay, of the most frequent kinds. Danger: Reset reuses the
// memory, so code that applies events must copy what it keeps. The zero value is ready to use.
type Arena struct {
	refreshed []engine.Refreshed
	quotes    []engine.AcceptedQuote
	leased    []account.Leased
}

// arenaMin is the smallest allocation, in events of one kind.
const arenaMin = 512

// Reset makes the memory of all events available again.
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

// alloc returns n new elements of a list. A full list is replaced and not moved, because events point into it.
func alloc[T any](list *[]T, n int) []T {
	used := len(*list)
	if cap(*list)-used < n {
		*list, used = make([]T, 0, max(n, 2*cap(*list), arenaMin)), 0
	}
	*list = (*list)[:used+n]
	return (*list)[used : used+n : used+n]
}

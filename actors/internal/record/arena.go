package record

import (
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Arena allocates the most frequent kinds of events of one batch of a replay. Danger: Reset reuses the memory, so
// code that applies events must copy all data that it retains. The zero value is ready to use.
type Arena struct {
	refreshed []engine.Refreshed
	quotes    []engine.AcceptedQuote
	leased    []account.Leased
}

// arenaMin is the smallest allocation, in events of one kind.
const arenaMin = 512

// Reset makes the memory of all allocated events available again.
func (a *Arena) Reset() {
	a.refreshed, a.quotes, a.leased = a.refreshed[:0], a.quotes[:0], a.leased[:0]
}

func (a *Arena) newRefreshed() *engine.Refreshed {
	e := &alloc(&a.refreshed, 1)[0]
	*e = engine.Refreshed{}
	return e
}

func (a *Arena) newLeased() *account.Leased {
	e := &alloc(&a.leased, 1)[0]
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

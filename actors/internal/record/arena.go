package record

import (
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Arena allocates the most frequent kinds of events together, which makes a replay faster. Danger: after Reset the
// memory of all these events is used again. Code that applies an event must copy what it keeps. The zero value is ready
// to use.
type Arena struct {
	refreshed []engine.Refreshed
	quotes    []engine.AcceptedQuote
	leased    []account.Leased
}

// arenaMin is the smallest allocation, in events of one kind.
const arenaMin = 512

// Reset lets new events use the memory of all earlier events.
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

// alloc returns n unused elements of a list. If the list has no room, alloc starts a new list and does not grow the old
// list, because events point into the memory of the old list.
func alloc[T any](list *[]T, n int) []T {
	used := len(*list)
	if cap(*list)-used < n {
		*list, used = make([]T, 0, max(n, 2*cap(*list), arenaMin)), 0
	}
	*list = (*list)[:used+n]
	return (*list)[used : used+n : used+n]
}

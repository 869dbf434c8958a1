package actors

import "github.com/tasard/tasard/engine"

// eventRoom is memory for the events of one batch of a replay, of those kinds that a log has most of. Danger: when it is emptied
// its events are given away again, so whoever applies an event keeps nothing of it but copies. A nil one gives each event memory
// of its own.
type eventRoom struct {
	refreshed []engine.Refreshed
	quotes    []engine.Quoted
	leased    []engine.Leased
}

func (e *eventRoom) empty() {
	e.refreshed, e.quotes, e.leased = e.refreshed[:0], e.quotes[:0], e.leased[:0]
}

func (e *eventRoom) newRefreshed() *engine.Refreshed {
	if e == nil {
		return &engine.Refreshed{}
	}
	return &room(&e.refreshed, 1)[0]
}

func (e *eventRoom) newLeased() *engine.Leased {
	if e == nil {
		return &engine.Leased{}
	}
	return &room(&e.leased, 1)[0]
}

// newQuotes is nil for none.
func (e *eventRoom) newQuotes(n int) []engine.Quoted {
	switch {
	case n == 0:
		return nil
	case e == nil:
		return make([]engine.Quoted, n)
	}
	return room(&e.quotes, n)
}

// room takes n from a list. A list without room is replaced, not moved: events point into it.
func room[T any](list *[]T, n int) []T {
	used := len(*list)
	if cap(*list)-used < n {
		*list, used = make([]T, 0, max(n, 2*cap(*list), replayBatch)), 0
	}
	*list = (*list)[:used+n]
	return (*list)[used : used+n : used+n]
}

package mail

import (
	"container/heap"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// entry is a letter that is not done with.
type entry struct {
	letter   account.Letter
	stamp    stamp
	due      time.Time // of the next try
	number   uint64    // order of arrival
	tries    int       // made
	place    int       // in the heap; onItsWay = the worker has it
	replaced bool      // by a newer letter while on its way
}

const onItsWay = -1

// queue keeps letters by due time. The zero value is empty. Not safe for concurrent use.
type queue struct {
	waiting  byDue
	latest   map[account.Email]*entry // at most one letter to an address waits or is on its way unreplaced
	underway int
	arrived  uint64
}

// size counts what waits and what is on its way.
func (q *queue) size() int { return len(q.waiting) + q.underway }

// replace takes out the letter that waits for the same address, or marks it when it is on its way. It reports whether there was one.
func (q *queue) replace(to account.Email) bool {
	older := q.latest[to]
	if older == nil {
		return false
	}
	delete(q.latest, to)
	if older.place == onItsWay {
		older.replaced = true
		return false
	}
	heap.Remove(&q.waiting, older.place)
	return true
}

// holds reports that a letter to the address waits, which a newer one would replace.
func (q *queue) holds(to account.Email) bool {
	older := q.latest[to]
	return older != nil && older.place != onItsWay
}

// add puts in a new letter; replace must have been called for its address.
func (q *queue) add(e *entry) {
	if q.latest == nil {
		q.latest = map[account.Email]*entry{}
	}
	q.arrived++
	e.number = q.arrived
	q.latest[e.letter.To] = e
	heap.Push(&q.waiting, e)
}

// next is the letter that is due first, or nil.
func (q *queue) next() *entry {
	if len(q.waiting) == 0 {
		return nil
	}
	return q.waiting[0]
}

// take moves the first letter from waiting to underway.
func (q *queue) take() *entry {
	e := heap.Pop(&q.waiting).(*entry)
	q.underway++
	return e
}

// putBack lets a letter that is on its way wait again.
func (q *queue) putBack(e *entry) {
	q.underway--
	heap.Push(&q.waiting, e)
}

// finish forgets a letter that is on its way.
func (q *queue) finish(e *entry) {
	q.underway--
	q.forget(e)
}

// sweep takes out every waiting letter for which gone is true.
func (q *queue) sweep(gone func(*entry) bool) []*entry {
	var out []*entry
	kept := q.waiting[:0]
	for _, e := range q.waiting {
		if gone(e) {
			q.forget(e)
			out = append(out, e)
		} else {
			e.place = len(kept)
			kept = append(kept, e)
		}
	}
	clear(q.waiting[len(kept):])
	q.waiting = kept
	heap.Init(&q.waiting)
	return out
}

func (q *queue) forget(e *entry) {
	if q.latest[e.letter.To] == e {
		delete(q.latest, e.letter.To)
	}
}

// byDue is a heap: first due first, among those the first that came.
type byDue []*entry

// Len counts the entries.
func (b byDue) Len() int { return len(b) }

// Less orders by due time, then arrival.
func (b byDue) Less(i, j int) bool {
	if !b[i].due.Equal(b[j].due) {
		return b[i].due.Before(b[j].due)
	}
	return b[i].number < b[j].number
}

// Swap exchanges two entries and keeps their places.
func (b byDue) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].place, b[j].place = i, j
}

// Push appends an entry, for heap.
func (b *byDue) Push(x any) {
	e := x.(*entry)
	e.place = len(*b)
	*b = append(*b, e)
}

// Pop removes the last entry, for heap.
func (b *byDue) Pop() any {
	last := len(*b) - 1
	e := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	e.place = onItsWay
	return e
}

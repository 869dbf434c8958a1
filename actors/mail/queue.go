package mail

import (
	"slices"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// entry is a letter that is not done with.
type entry struct {
	mail        account.LoginMail
	id          messageID
	nextAttempt time.Time // of the next try
	attempts    int       // made
	sending     bool      // the worker has it
	replaced    bool      // by a newer letter while it was underway
}

// queue keeps letters in the order of their arrival. It holds at most Config.QueueMax, so that each question may look at all of them.
// The zero value is empty. Not safe for concurrent use.
type queue []*entry

// indexOf is where the letter that waits for an address stands, -1 without one.
func (q queue) indexOf(to account.Email) int {
	return slices.IndexFunc(q, func(e *entry) bool { return e.mail.To == to && !e.sending })
}

// add puts in a new letter in place of an older one to the same address, or marks the older one when it is underway. It reports whether one
// left the queue.
func (q *queue) add(e *entry) (replaced bool) {
	for _, older := range *q {
		older.replaced = older.replaced || older.mail.To == e.mail.To
	}
	if at := q.indexOf(e.mail.To); at >= 0 {
		*q, replaced = slices.Delete(*q, at, at+1), true
	}
	*q = append(*q, e)
	return replaced
}

// next is the letter that waits and is due first, among those the one that came first; nil when none waits.
func (q queue) next() *entry {
	var first *entry
	for _, e := range q {
		if !e.sending && (first == nil || e.nextAttempt.Before(first.nextAttempt)) {
			first = e
		}
	}
	return first
}

// removeWaiting takes out every waiting letter for which gone is true.
func (q *queue) removeWaiting(gone func(*entry) bool) []*entry {
	var out []*entry
	*q = slices.DeleteFunc(*q, func(e *entry) bool {
		if e.sending || !gone(e) {
			return false
		}
		out = append(out, e)
		return true
	})
	return out
}

// remove forgets a letter.
func (q *queue) remove(e *entry) {
	*q = slices.DeleteFunc(*q, func(other *entry) bool { return other == e })
}

package mail

import (
	"slices"
	"time"

	"github.com/tasard/tasard/engine/account"
)

// entry is an email in the queue.
type entry struct {
	mail        account.LoginMail
	id          messageID
	nextAttempt time.Time // of the next try
	attempts    int       // made so far
	sending     bool      // by the worker
	replaced    bool      // by a newer email while it was being sent
}

// queue has emails in the order of their arrival, at most queueMax, so that linear searches suffice. Not safe for
// concurrent use.
type queue []*entry

// indexOf returns the position of the waiting email to an address, -1 without one.
func (q queue) indexOf(to account.Email) int {
	return slices.IndexFunc(q, func(e *entry) bool { return e.mail.To == to && !e.sending })
}

// add appends an email and removes a waiting one to the same address, or marks it as replaced if it is being sent. It
// reports whether one was removed.
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

// next returns the waiting email that is due first, the earliest in the queue among equals; nil when none waits.
func (q queue) next() *entry {
	var first *entry
	for _, e := range q {
		if !e.sending && (first == nil || e.nextAttempt.Before(first.nextAttempt)) {
			first = e
		}
	}
	return first
}

// removeWaiting removes the waiting emails for which gone is true.
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

// remove removes an email.
func (q *queue) remove(e *entry) {
	*q = slices.DeleteFunc(*q, func(other *entry) bool { return other == e })
}

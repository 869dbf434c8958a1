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
	nextAttempt time.Time // earliest time of the next attempt
	attempts    int       // number of finished attempts
	sending     bool      // the worker is sending the email; if false, the email is waiting
	replaced    bool      // a newer email to the same address was queued while the worker was sending this email
}

// queue has at most queueMax emails in the order of their arrival. It is small enough for linear searches. It is not
// safe for concurrent use.
type queue []*entry

// indexOf returns the index of the waiting email to an address, or -1.
func (q queue) indexOf(to account.Email) int {
	return slices.IndexFunc(q, func(e *entry) bool { return e.mail.To == to && !e.sending })
}

// add appends an email. If an older email to the same address is waiting, add removes the older email and returns true.
// If the worker is sending the older email, add marks it as replaced.
func (q *queue) add(e *entry) (replaced bool) {
	for _, other := range *q {
		other.replaced = other.replaced || other.mail.To == e.mail.To
	}
	if i := q.indexOf(e.mail.To); i >= 0 {
		*q, replaced = slices.Delete(*q, i, i+1), true
	}
	*q = append(*q, e)
	return replaced
}

// next returns the email with the earliest nextAttempt, or nil if the queue is empty. Only the worker may call it,
// while it is not sending an email.
func (q queue) next() *entry {
	var first *entry
	for _, e := range q {
		if first == nil || e.nextAttempt.Before(first.nextAttempt) {
			first = e
		}
	}
	return first
}

// removeWaiting removes and returns the waiting emails for which match returns true.
func (q *queue) removeWaiting(match func(*entry) bool) []*entry {
	var removed []*entry
	*q = slices.DeleteFunc(*q, func(e *entry) bool {
		if e.sending || !match(e) {
			return false
		}
		removed = append(removed, e)
		return true
	})
	return removed
}

func (q *queue) remove(e *entry) {
	*q = slices.DeleteFunc(*q, func(other *entry) bool { return other == e })
}

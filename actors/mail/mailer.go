package mail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Mailer sends emails. Its methods are safe for concurrent use.
type Mailer struct {
	config Config
	ctx    context.Context // canceled when Close no longer waits for the worker
	cancel context.CancelFunc
	wake   chan struct{} // signals the worker to check the queue
	done   chan struct{} // closed when the worker has returned

	mu           sync.Mutex // guards the fields below; never held during an attempt
	queue        []*entry   // at most queueMax emails, including the one being sent
	counts       Stats
	closing      bool      // Close was called
	fullSince    time.Time // when the full queue first rejected an email; zero = it has not
	failingSince time.Time // when the server stopped answering; zero = it answers
	refused      refusals
}

// entry is an accepted email.
type entry struct {
	mail        account.LoginMail
	message     *gomail.Msg // the same in every attempt, so that a server can recognize a duplicate
	nextAttempt time.Time   // earliest time of the next attempt
	attempts    int         // number of finished attempts
	sending     bool
}

// refusals describes the emails refused by the server since it last accepted one.
type refusals struct {
	recipients []account.Email // some recipients, each once
	code       int             // newest SMTP status
	since      time.Time
}

const (
	// refusedRecipientsMin is the number of consecutive refused recipients at which the condition says that the server
	// refuses every email. Fewer refusals may come from users who mistyped their address.
	refusedRecipientsMin = 3
	// retryAfter is the RetryAfter of Send's errors.
	retryAfter = 30 * time.Second
)

// Stats counts emails since Open. Each accepted email is counted in exactly one of Waiting, Sent, Refused, Expired,
// Replaced and Abandoned.
type Stats struct {
	Waiting   int       `json:"waiting"`   // in the queue, including the one being sent
	Sent      uint64    `json:"sent"`      // accepted by the server
	Refused   uint64    `json:"refused"`   // rejected by the server with status 5xx
	Expired   uint64    `json:"expired"`   // not sent before the code expired
	Replaced  uint64    `json:"replaced"`  // not sent: a newer email to the same address replaced it
	Abandoned uint64    `json:"abandoned"` // not sent: the mailer was closed
	Dropped   uint64    `json:"dropped"`   // rejected by Send: the queue was full
	Failures  uint64    `json:"failures"`  // failed attempts
	LastSent  time.Time `json:"lastSent,omitzero"`
}

// Open starts the worker; Close stops it. It does not connect, so a node can start while its mail server is down.
func Open(config Config) *Mailer {
	m := &Mailer{config: config.withDefaults(), wake: make(chan struct{}, 1), done: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	go m.work()
	return m
}

// Send queues an email and returns at once. It replaces a waiting email to the same address. The error is an
// *engine.Error with CodeOverloaded if the queue is full or the mailer is closed. Stats and the log show later whether
// the email was sent.
func (m *Mailer) Send(mail account.LoginMail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return overloaded("mailer is closed")
	}
	now := m.config.Clock()
	message, err := compose(mail, now, m.config)
	if err != nil {
		return err
	}
	m.dropExpired(now)
	if len(m.queue) < m.config.queueMax { // an email that only replaces another one leaves a full queue full
		m.fullSince = time.Time{}
	}
	m.drop(&m.counts.Replaced, "replaced by a newer email", func(e *entry) bool { return e.mail.To == mail.To })
	if len(m.queue) >= m.config.queueMax {
		m.counts.Dropped++
		if m.fullSince.IsZero() {
			m.fullSince = now
		}
		return overloaded("mail queue is full")
	}
	m.queue = append(m.queue, &entry{mail: mail, message: message, nextAttempt: now})
	m.wakeWorker()
	return nil
}

func overloaded(cause string) error {
	return &engine.Error{
		Code: engine.CodeOverloaded, Message: "Codes cannot be sent at the moment. Try again later.", RetryAfter: retryAfter, Cause: errors.New(cause),
	}
}

// drop removes waiting emails from the queue. It counts and logs them. The caller must hold mu.
func (m *Mailer) drop(count *uint64, why string, match func(*entry) bool) {
	m.queue = slices.DeleteFunc(m.queue, func(e *entry) bool {
		dropped := !e.sending && match(e)
		if dropped {
			*count++
			m.logDropped(e, why)
		}
		return dropped
	})
}

func (m *Mailer) dropExpired(now time.Time) {
	m.drop(&m.counts.Expired, "code expired", func(e *entry) bool { return !now.Before(e.mail.Expires) })
}

func (m *Mailer) wakeWorker() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Close stops the worker and makes Send reject emails. Before it stops, the worker attempts each untried email once,
// unless the server fails. When ctx ends or drainTimeout has passed, Close closes the connection and drops the other
// emails. The error contains the number of dropped emails.
func (m *Mailer) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closing = true
	m.wakeWorker()
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	select {
	case <-m.done:
	case <-ctx.Done():
	}
	m.cancel()
	<-m.done
	if abandoned := m.Stats().Abandoned; abandoned > 0 {
		return fmt.Errorf("close the mailer: unsent emails: %d", abandoned)
	}
	return nil
}

// Stats returns the counts so far.
func (m *Mailer) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := m.counts
	stats.Waiting = len(m.queue)
	return stats
}

// work is the worker goroutine. After Close it returns when the queue is empty.
func (m *Mailer) work() {
	defer close(m.done)
	for {
		e, wait := m.next()
		switch {
		case e != nil:
			m.finishAttempt(e, m.config.send(m.ctx, e.message))
		case wait == 0:
			return
		default:
			m.wait(wait)
		}
	}
}

// forever is the wait of an idle worker, ended early by a new email.
const forever = 24 * time.Hour

// next returns the email to send now. Otherwise it returns the time until the next attempt, or 0 if the mailer is
// closed.
func (m *Mailer) next() (*entry, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.config.Clock()
	m.dropExpired(now)
	if m.closing {
		m.drop(&m.counts.Abandoned, "abandoned at shutdown", func(e *entry) bool {
			return m.ctx.Err() != nil || !m.failingSince.IsZero() || e.attempts > 0
		})
	}
	switch {
	case len(m.queue) > 0:
	case m.closing:
		return nil, 0
	default:
		return nil, forever
	}
	first := slices.MinFunc(m.queue, func(a, b *entry) int { return a.nextAttempt.Compare(b.nextAttempt) })
	if wait := first.nextAttempt.Sub(now); wait > 0 && !m.closing {
		return nil, wait
	}
	first.sending = true
	return first, 0
}

// wait blocks until wakeWorker is called, the mailer's context is canceled, or the duration has passed.
func (m *Mailer) wait(duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-m.wake:
	case <-timer.C:
	case <-m.ctx.Done():
	}
}

// finishAttempt handles the result of an attempt. A temporary failure delays the email, a permanent one removes it.
func (m *Mailer) finishAttempt(e *entry, fail *failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.config.Clock()
	m.queue = slices.DeleteFunc(m.queue, func(other *entry) bool { return other == e })
	e.attempts++
	e.sending = false
	if m.ctx.Err() == nil { // otherwise Close caused the failure, not the server
		m.noteServer(e.mail.To, fail, now)
	}
	if fail == nil {
		m.counts.Sent++
		m.counts.LastSent = now
		m.config.Logger.Debug("email sent", "to", e.mail.To.ID().String(), "attempts", e.attempts)
		return
	}
	m.counts.Failures++
	switch {
	case fail.permanent():
		m.counts.Refused++
		m.logDropped(e, "refused "+fail.Error())
	case slices.ContainsFunc(m.queue, func(newer *entry) bool { return newer.mail.To == e.mail.To }):
		m.counts.Replaced++
		m.logDropped(e, "replaced by a newer email")
	default:
		e.nextAttempt = now.Add(backoff(e.attempts))
		m.queue = append(m.queue, e)
		m.config.Logger.Info("email not sent, will retry", "to", e.mail.To.ID().String(), "attempts", e.attempts, "next", e.nextAttempt, "why", fail.Error())
	}
}

// noteServer records for Condition whether the server answers, and whether it refuses every email. The caller must hold
// mu.
func (m *Mailer) noteServer(to account.Email, fail *failure, now time.Time) {
	switch {
	case fail != nil && fail.isServerFailure():
		if m.failingSince.IsZero() {
			m.failingSince = now
			m.config.Logger.Error("mail server fails, emails wait", "server", m.config.Addr, "why", fail.Error())
		}
		return
	case !m.failingSince.IsZero():
		m.failingSince = time.Time{}
		m.config.Logger.Info("mail server answers again", "server", m.config.Addr)
	}
	r := &m.refused
	switch {
	case fail == nil:
		*r = refusals{}
		return
	case r.since.IsZero():
		r.since = now
	}
	r.code = fail.code
	if len(r.recipients) < refusedRecipientsMin && !slices.Contains(r.recipients, to) {
		r.recipients = append(r.recipients, to)
	}
}

// backoff returns the delay before the next attempt. It doubles with each failure, up to a maximum.
func backoff(failures int) time.Duration { return min(backoffFirst<<min(failures-1, 16), backoffMax) }

// Condition reports whether the mailer can send emails. It does not wait for the server.
func (m *Mailer) Condition() engine.Condition {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := engine.HealthyCondition("mail")
	switch {
	case !m.fullSince.IsZero() && len(m.queue) >= m.config.queueMax:
		c.State, c.Since = "full", m.fullSince
		c.Detail = "The mail queue is full, so no login code is accepted; API keys still work. Check the mail server."
	case len(m.refused.recipients) >= refusedRecipientsMin:
		c.State, c.Since = "refusing", m.refused.since
		c.Detail = fmt.Sprintf("The mail server refuses every email, the last one with status %d, so login codes do not arrive; API keys still work. "+
			"Check what it demands of the sender --mail-from, the login and this machine; the log has each refusal.", m.refused.code)
	case !m.failingSince.IsZero():
		c.State, c.Since = "failing", m.failingSince
		c.Detail = "The mail server accepts no email, so login codes wait or expire; API keys still work. Check the server and the mail settings."
	}
	c.Since = c.Since.Round(0).UTC()
	return c
}

// logDropped logs an email that was removed from the queue without being sent.
func (m *Mailer) logDropped(e *entry, why string) {
	m.config.Logger.Warn("email dropped", "to", e.mail.To.ID().String(), "attempts", e.attempts, "why", why)
}

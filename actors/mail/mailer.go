package mail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	ctx    context.Context // canceled when Close stops waiting for the worker
	cancel context.CancelFunc
	wake   chan struct{} // makes the worker check the queue
	done   chan struct{} // closed when the worker has returned

	mu           sync.Mutex // guards the fields below; never held during an attempt
	queue        []*entry   // at most queueMax, in the order of their arrival
	counts       Stats
	closing      bool      // Close was called
	failures     int       // consecutive failures of the server
	failingSince time.Time // time of the first of these; zero = none
	pausedUntil  time.Time // no attempt before this time, because the server fails
	fullSince    time.Time // an email was not accepted, and none has left the queue since; zero = there is room
	refused      refusals
}

// entry is an email in the queue.
type entry struct {
	mail        account.LoginMail
	message     *gomail.Msg // the same in every attempt, so that a server can find an email that it has twice
	nextAttempt time.Time   // earliest time of the next attempt
	attempts    int         // number of finished attempts
	sending     bool        // the worker is sending the email
	replaced    bool        // a newer email to the same address was queued while the worker was sending this email
}

// refusals are the emails that the server has refused since it last accepted one.
type refusals struct {
	recipients []account.Email // some of their recipients, each once
	ofSender   bool            // the server refused the sender, so it would refuse every email
	code       int             // newest SMTP status
	since      time.Time
}

const (
	// refusedRecipientsMin is the number of recipients whose emails must be refused, while none is accepted, until the
	// condition says that the server refuses every email. A few users mistype their address.
	refusedRecipientsMin = 3
	// retryAfter is the time after which the caller of Send should try again. The error of Send has it as RetryAfter.
	retryAfter = 30 * time.Second
)

// Stats counts emails since Open. Each email that Send has accepted is counted in exactly one of Waiting, Sent,
// Refused, Expired, Replaced and Abandoned.
type Stats struct {
	Waiting   int    // in the queue, including the email that is being sent
	Sent      uint64 // accepted by the server
	Refused   uint64 // rejected by the server with status 5xx
	Expired   uint64 // not sent before the code expired
	Replaced  uint64 // not sent: a newer email to the same address was queued
	Abandoned uint64 // not sent: the mailer was closed
	Dropped   uint64 // not accepted by Send, because the queue was full
	Failures  uint64 // failed attempts
	LastSent  time.Time
}

// ErrClosed is the cause of Send's error after Close.
var ErrClosed = errors.New("mailer is closed")

// ErrFull is the cause of Send's error when the queue is full.
var ErrFull = errors.New("mail queue is full")

// Open checks the configuration and starts the worker. It does not connect to the server, so a node can start while its
// mail server is down. Close must be called to stop the worker.
func Open(config Config) (*Mailer, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	m := &Mailer{config: config, wake: make(chan struct{}, 1), done: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	go m.work()
	return m, nil
}

// Send queues an email and returns at once. The error is ErrInvalidMail, or an *engine.Error with CodeOverloaded if the
// queue is full or the mailer is closed. Stats and the log show later whether the email was sent. An email replaces a
// waiting one to the same address.
func (m *Mailer) Send(mail account.LoginMail) error {
	if err := checkMail(mail); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return overloaded(ErrClosed)
	}
	now := m.config.Clock()
	message, err := compose(mail, now, m.config)
	if err != nil {
		return err
	}
	m.dropExpired(now)
	for _, other := range m.queue {
		other.replaced = other.mail.To == mail.To
	}
	m.counts.Replaced += m.remove(func(e *entry) bool { return e.replaced && !e.sending })
	if len(m.queue) >= m.config.queueMax {
		m.counts.Dropped++
		if m.fullSince.IsZero() {
			m.fullSince = now
		}
		return overloaded(ErrFull)
	}
	m.queue = append(m.queue, &entry{mail: mail, message: message, nextAttempt: now})
	m.wakeWorker()
	return nil
}

func overloaded(cause error) error {
	return &engine.Error{
		Code:       engine.CodeOverloaded,
		Message:    "Codes cannot be sent at the moment. Try again later.",
		RetryAfter: retryAfter,
		Cause:      cause,
	}
}

// remove removes emails from the queue and returns how many. The caller must hold mu.
func (m *Mailer) remove(match func(*entry) bool) uint64 {
	before := len(m.queue)
	m.queue = slices.DeleteFunc(m.queue, match)
	if len(m.queue) < before {
		m.fullSince = time.Time{}
	}
	return uint64(before - len(m.queue))
}

// dropExpired removes waiting emails with an expired code. The caller must hold mu.
func (m *Mailer) dropExpired(now time.Time) {
	m.counts.Expired += m.remove(func(e *entry) bool {
		expired := !e.sending && !now.Before(e.mail.Expires)
		if expired {
			m.logDropped(e, "code expired", nil)
		}
		return expired
	})
}

func (m *Mailer) wakeWorker() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Close stops the worker. From then on Send accepts no email. Before the worker stops, it makes one attempt for each
// queued email that it has not attempted yet, unless the server fails. When ctx ends or when drainTimeout has passed,
// Close closes the connection and drops the other emails. The error has the number of emails that were dropped.
func (m *Mailer) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closing = true
	m.wakeWorker()
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, m.config.drainTimeout)
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

// work is the worker goroutine. After Close was called, it returns when the queue is empty.
func (m *Mailer) work() {
	defer close(m.done)
	for {
		e, wait, done := m.next()
		switch {
		case done:
			return
		case e == nil:
			m.wait(wait)
		default:
			m.finishAttempt(e, m.config.send(m.ctx, e.message))
		}
	}
}

// next returns the email to send now. If there is none, it returns the time until the next attempt. done means that the
// mailer is closed and all emails are handled.
func (m *Mailer) next() (first *entry, wait time.Duration, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.config.Clock()
	m.dropExpired(now)
	if m.closing {
		m.counts.Abandoned += m.remove(func(e *entry) bool {
			dropped := m.ctx.Err() != nil || m.failures > 0 || e.attempts > 0
			if dropped {
				m.logDropped(e, "abandoned at shutdown", nil)
			}
			return dropped
		})
	}
	for _, e := range m.queue {
		if first == nil || e.nextAttempt.Before(first.nextAttempt) {
			first = e
		}
	}
	switch {
	case first == nil && m.closing:
		return nil, 0, true
	case first == nil:
		return nil, forever, false
	}
	ready := first.nextAttempt
	if m.pausedUntil.After(ready) {
		ready = m.pausedUntil
	}
	if ready.After(now) && !m.closing {
		return nil, ready.Sub(now), false
	}
	first.sending = true
	return first, 0, false
}

// forever is the duration of a wait without a timeout.
const forever = time.Duration(-1)

// wait waits until wakeWorker is called, the mailer's context is canceled, or the duration has passed.
func (m *Mailer) wait(duration time.Duration) {
	var timeout <-chan time.Time
	if duration != forever {
		timer := time.NewTimer(duration)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-m.wake:
	case <-timeout:
	case <-m.ctx.Done():
	}
}

// finishAttempt notes the result of an attempt. A failure of the server pauses all attempts. A refusal of one email
// delays only this one, or removes it if the refusal is permanent.
func (m *Mailer) finishAttempt(e *entry, fail *failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.config.Clock()
	e.sending = false
	e.attempts++
	if m.ctx.Err() == nil { // else Close is the cause of the failure, not the server
		m.noteServer(fail, now)
		m.noteRefusal(e.mail.To, fail, now)
	}
	switch {
	case fail == nil:
		m.counts.Sent++
		m.counts.LastSent = now
		m.config.Logger.Debug("email sent", "to", e.mail.To.ID().String(), "attempts", e.attempts)
	case fail.permanent():
		m.counts.Refused++
		m.counts.Failures++
		m.logDropped(e, "refused", fail)
	case e.replaced:
		m.counts.Replaced++
		m.counts.Failures++
		m.logDropped(e, "replaced by a newer email", fail)
	default:
		m.counts.Failures++
		e.nextAttempt = now.Add(m.backoff(e.attempts))
		m.log(slog.LevelInfo, "email not sent, will retry", fail, "to", e.mail.To.ID().String(), "attempts", e.attempts, "next", e.nextAttempt)
		return
	}
	m.remove(func(other *entry) bool { return other == e })
}

// noteServer counts failures of the server. The caller must hold mu.
func (m *Mailer) noteServer(fail *failure, now time.Time) {
	if fail == nil || !fail.isServerFailure() {
		if m.failures > 0 {
			m.config.Logger.Info("mail server answers again", "server", m.config.Addr)
		}
		m.failures, m.failingSince, m.pausedUntil = 0, time.Time{}, time.Time{}
		return
	}
	if m.failures++; m.failures == 1 {
		m.failingSince = now
		m.log(slog.LevelError, "mail server fails, emails wait", fail, "server", m.config.Addr)
	}
	m.pausedUntil = now.Add(m.backoff(m.failures))
}

// noteRefusal notes the result of an attempt for an email. Failures of the server say nothing about refusals. The
// caller must hold mu.
func (m *Mailer) noteRefusal(to account.Email, fail *failure, now time.Time) {
	r := &m.refused
	switch {
	case fail != nil && fail.isServerFailure():
		return
	case fail == nil:
		*r = refusals{}
		return
	case r.since.IsZero():
		r.since = now
	}
	r.code, r.ofSender = fail.code, r.ofSender || fail.ofSender
	if len(r.recipients) < refusedRecipientsMin && !slices.Contains(r.recipients, to) {
		r.recipients = append(r.recipients, to)
	}
}

// backoff returns the delay before the next attempt after a number of failures: it doubles up to a maximum.
func (m *Mailer) backoff(failures int) time.Duration {
	return min(m.config.backoffFirst<<min(failures-1, 16), m.config.backoffMax)
}

// Condition reports whether the mailer can send emails. It does not wait for the server.
func (m *Mailer) Condition() engine.Condition {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !m.fullSince.IsZero():
		return engine.Condition{
			Name: "mail", State: "full", Since: m.fullSince.Round(0).UTC(),
			Detail: "The mail queue is full, so no login code is accepted; API keys still work. Check the mail server.",
		}
	case m.refused.ofSender || len(m.refused.recipients) >= refusedRecipientsMin:
		return engine.Condition{
			Name: "mail", State: "refusing", Since: m.refused.since.Round(0).UTC(),
			Detail: fmt.Sprintf("The mail server refuses every email, the last one with status %d, so login codes do not arrive; API keys still work. "+
				"Check what it demands of the sender --mail-from, the login and this machine; the log has each refusal.", m.refused.code),
		}
	case m.failures > 0:
		return engine.Condition{
			Name: "mail", State: "failing", Since: m.failingSince.Round(0).UTC(),
			Detail: "The mail server accepts no email, so login codes wait or expire; API keys still work. Check the server and the mail settings.",
		}
	}
	return engine.HealthyCondition("mail")
}

// logDropped logs an email that was removed from the queue without being sent.
func (m *Mailer) logDropped(e *entry, why string, fail *failure) {
	m.log(slog.LevelWarn, "email dropped", fail, "to", e.mail.To.ID().String(), "attempts", e.attempts, "why", why)
}

// log logs a message and the failure that caused it: its stage, SMTP status, timeout and text. fail may be nil.
func (m *Mailer) log(level slog.Level, message string, fail *failure, args ...any) {
	var attrs []any
	if fail != nil {
		attrs = append(attrs, "stage", string(fail.stage))
		if fail.code != 0 {
			attrs = append(attrs, "smtp", fail.code)
		}
		if fail.timeout {
			attrs = append(attrs, "timeout", true)
		}
		if fail.detail != "" {
			attrs = append(attrs, "detail", fail.detail)
		}
	}
	m.config.Logger.Log(context.Background(), level, message, append(attrs, args...)...)
}

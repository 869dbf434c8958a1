package mail

import (
	"context"
	"log/slog"
	"time"
)

// outcome is the result of an attempt, or the reason why an email was removed from the queue. The text is for the log.
type outcome string

const (
	outcomeSent      outcome = "sent"
	outcomeRetry     outcome = "later"
	outcomeRefused   outcome = "refused"
	outcomeExhausted outcome = "attempts used up"
	outcomeExpired   outcome = "code expired"
	outcomeReplaced  outcome = "replaced by a newer email"
	outcomeAbandoned outcome = "abandoned at shutdown"
)

// forever is the duration of a wait without a timeout.
const forever = time.Duration(-1)

// work is the worker goroutine. After Close was called, it returns when the queue is empty.
func (m *Mailer) work() {
	defer close(m.done)
	var current *session // stays open until no email is due
	for {
		e, wait, done := m.next()
		if e != nil {
			current = m.attempt(current, e)
			continue
		}
		if current != nil {
			current.finish(m.ctx, nil)
			current = nil
			continue // because an email may have become due during finish
		}
		if done {
			return
		}
		m.waitOrProbe(wait)
	}
}

// next returns the email to send now. If there is none, it returns the time until the next attempt of an email, or
// forever. done means that the mailer is closed and all emails are handled.
func (m *Mailer) next() (e *entry, wait time.Duration, done bool) {
	m.mu.Lock()
	now := m.config.Clock()
	expired := m.dropExpired(now)
	abandoned := m.abandon()
	e, wait = m.nextDue(now)
	done = m.closing && e == nil
	m.mu.Unlock()
	m.logDropped(expired, outcomeExpired, nil)
	m.logDropped(abandoned, outcomeAbandoned, nil)
	return e, wait, done
}

// abandon removes emails from the queue after Close was called. It removes those that were attempted before, and keeps
// the others for one attempt. If Close has stopped waiting, or if the circuit breaker is open, it removes all.
func (m *Mailer) abandon() []*entry {
	if !m.closing {
		return nil
	}
	dropAll := m.ctx.Err() != nil || m.breaker.open()
	dropped := m.queue.removeWaiting(func(e *entry) bool { return dropAll || e.attempts > 0 })
	m.counts.Abandoned += uint64(len(dropped))
	return dropped
}

// nextDue returns the email with the earliest next attempt if that time has come, and marks it as being sent. Otherwise
// it returns the time to wait. After Close was called every email is due at once.
func (m *Mailer) nextDue(now time.Time) (*entry, time.Duration) {
	first := m.queue.next()
	if first == nil {
		return nil, forever
	}
	ready := first.nextAttempt
	if m.breaker.open() && m.breaker.retryAt.After(ready) {
		ready = m.breaker.retryAt
	}
	if ready.After(now) && !m.closing {
		return nil, ready.Sub(now)
	}
	first.sending = true
	return first, 0
}

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

// attempt tries to send an email. It uses sess, or opens a session if sess is nil. It returns the session, or nil if
// the session cannot send another email.
func (m *Mailer) attempt(sess *session, e *entry) *session {
	var fail *failure
	if sess == nil {
		sess, fail = m.dialer.connect(m.ctx)
	}
	if fail == nil {
		fail = sess.send(m.ctx, compose(e.mail, e.id, m.config))
	}
	m.finishAttempt(e, fail)
	if sess != nil && (fail != nil || sess.sent >= sessionEmailsMax) {
		sess.finish(m.ctx, fail)
		return nil
	}
	return sess
}

// finishAttempt updates the queue, the circuit breaker and the counts after an attempt.
func (m *Mailer) finishAttempt(e *entry, fail *failure) {
	m.mu.Lock()
	e.attempts++
	now := m.config.Clock()
	// After ctx is canceled the cause of a failure is Close, not the server.
	changed := m.ctx.Err() == nil && m.breaker.record(fail, now)
	m.rejections.record(e.mail.To, fail, now)
	open := m.breaker.open()
	result := m.classify(e, fail, now)
	if e.sending = false; result != outcomeRetry {
		m.queue.remove(e)
	}
	m.mu.Unlock()
	if result == outcomeSent {
		select {
		case m.sent <- struct{}{}:
		default:
		}
	}
	m.logAttempt(e, result, fail)
	if changed {
		m.logBreaker(open, fail)
	}
}

// classify returns the outcome of an attempt and counts it. After a failure it sets the time of the next attempt. The
// caller must hold mu.
func (m *Mailer) classify(e *entry, fail *failure, now time.Time) outcome {
	if fail == nil {
		m.counts.Sent++
		m.counts.LastSent = now
		return outcomeSent
	}
	m.counts.Failures++
	e.nextAttempt = now.Add(m.backoff(e.attempts))
	switch {
	case fail.permanent():
		m.counts.Refused++
		return outcomeRefused
	case e.replaced:
		m.counts.Replaced++
		return outcomeReplaced
	case e.attempts >= m.config.attemptsMax:
		m.counts.Exhausted++
		return outcomeExhausted
	case !e.nextAttempt.Before(e.mail.Expires):
		m.counts.Expired++
		return outcomeExpired
	}
	return outcomeRetry
}

func (m *Mailer) logAttempt(e *entry, result outcome, fail *failure) {
	switch result {
	case outcomeSent:
		m.config.Logger.Debug("email sent", "to", e.mail.To.ID().String(), "attempts", e.attempts)
	case outcomeRetry:
		m.log(slog.LevelInfo, "email not sent, will retry", fail, "to", e.mail.To.ID().String(), "attempts", e.attempts, "next", e.nextAttempt)
	default:
		m.logDropped([]*entry{e}, result, fail)
	}
}

// logDropped logs emails that were removed from the queue without being sent.
func (m *Mailer) logDropped(entries []*entry, reason outcome, fail *failure) {
	for _, e := range entries {
		m.log(slog.LevelWarn, "email dropped", fail, "to", e.mail.To.ID().String(), "attempts", e.attempts, "why", string(reason))
	}
}

func (m *Mailer) logBreaker(open bool, fail *failure) {
	if !open {
		m.config.Logger.Info("mail server answers again", "server", m.config.Addr)
		return
	}
	m.log(slog.LevelError, "mail server fails, emails wait", fail, "server", m.config.Addr, "pause", m.config.breaker.cooldown)
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

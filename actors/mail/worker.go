package mail

import (
	"context"
	"log/slog"
	"time"
)

// outcome is the result of an email in logs.
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

// forever is a wait that ends only with a wake-up.
const forever = time.Duration(-1)

// work is the worker goroutine. It ends after Close, when it gave up or the queue is drained.
func (m *Mailer) work() {
	defer close(m.done)
	var current *session // kept while emails are due
	for {
		e, wait, over := m.next()
		if e != nil {
			current = m.attempt(current, e)
			continue
		}
		if current != nil {
			current.finish(m.ctx, nil)
			current = nil
			continue // an email may have been queued meanwhile
		}
		if over {
			return
		}
		m.waitOrProbe(wait)
	}
}

// next returns the email to send now, or how long to wait for one; over means that there will be none.
func (m *Mailer) next() (e *entry, wait time.Duration, over bool) {
	m.mu.Lock()
	now := m.config.Clock()
	expired := m.dropExpired(now)
	abandoned := m.abandon()
	e, wait = m.takeDue(now)
	over = m.closing && e == nil
	m.mu.Unlock()
	m.logDropped(expired, outcomeExpired, nil)
	m.logDropped(abandoned, outcomeAbandoned, nil)
	return e, wait, over
}

// abandon removes, after Close was called, all emails except those that wait for their first attempt at a working
// server.
func (m *Mailer) abandon() []*entry {
	if !m.closing {
		return nil
	}
	all := m.ctx.Err() != nil || m.breaker.open()
	dropped := m.queue.removeWaiting(func(e *entry) bool { return all || e.attempts > 0 })
	m.counts.Abandoned += uint64(len(dropped))
	return dropped
}

// takeDue takes the first email if it is due; after Close all remaining ones are.
func (m *Mailer) takeDue(now time.Time) (*entry, time.Duration) {
	first := m.queue.next()
	if first == nil {
		return nil, forever
	}
	ready := first.nextAttempt
	if m.breaker.open() && m.breaker.until.After(ready) {
		ready = m.breaker.until
	}
	if ready.After(now) && !m.closing {
		return nil, ready.Sub(now)
	}
	first.sending = true
	return first, 0
}

// wait waits for a wake-up, the end or a time.
func (m *Mailer) wait(wait time.Duration) {
	var fire <-chan time.Time
	if wait != forever {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		fire = timer.C
	}
	select {
	case <-m.wake:
	case <-fire:
	case <-m.ctx.Done():
	}
}

// attempt sends an email on the open session or a new one. It returns the session if it can be used again.
func (m *Mailer) attempt(open *session, e *entry) *session {
	var failed *failure
	if open == nil {
		open, failed = m.server.connect(m.ctx)
	}
	if failed == nil {
		failed = open.send(m.ctx, compose(e.mail, e.id, m.config))
	}
	m.finishAttempt(e, failed)
	if open != nil && (failed != nil || open.sent >= sessionEmailsMax) {
		open.finish(m.ctx, failed)
		return nil
	}
	return open
}

// finishAttempt updates the queue after an attempt.
func (m *Mailer) finishAttempt(e *entry, failed *failure) {
	m.mu.Lock()
	e.attempts++
	now := m.config.Clock()
	changed := m.ctx.Err() == nil && m.breaker.record(failed, now) // a connection closed by Close is not the server's failure
	open := m.breaker.open()
	result := m.classify(e, failed, now)
	if e.sending = false; result != outcomeRetry {
		m.queue.remove(e)
	}
	m.mu.Unlock()
	m.logAttempt(e, result, failed)
	if changed {
		m.logBreaker(open, failed)
	}
}

// classify names the outcome of an attempt and counts it. Called with mu held.
func (m *Mailer) classify(e *entry, failed *failure, now time.Time) outcome {
	if failed == nil {
		m.counts.Sent++
		m.counts.LastSent = now
		return outcomeSent
	}
	m.counts.Failures++
	e.nextAttempt = now.Add(m.backoff(e.attempts))
	switch {
	case failed.permanent():
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

func (m *Mailer) logAttempt(e *entry, result outcome, failed *failure) {
	switch result {
	case outcomeSent:
		m.config.Logger.Debug("email sent", "to", e.mail.To.ID().String(), "attempts", e.attempts)
	case outcomeRetry:
		m.log(slog.LevelInfo, "email not sent, will retry", failed, "to", e.mail.To.ID().String(), "attempts", e.attempts, "next", e.nextAttempt)
	default:
		m.logDropped([]*entry{e}, result, failed)
	}
}

// logDropped logs emails that will not be sent.
func (m *Mailer) logDropped(entries []*entry, why outcome, failed *failure) {
	for _, e := range entries {
		m.log(slog.LevelWarn, "email dropped", failed, "to", e.mail.To.ID().String(), "attempts", e.attempts, "why", string(why))
	}
}

func (m *Mailer) logBreaker(open bool, failed *failure) {
	if !open {
		m.config.Logger.Info("mail server answers again", "server", m.config.Addr)
		return
	}
	m.log(slog.LevelError, "mail server fails, emails wait", failed, "server", m.config.Addr, "pause", m.config.breaker.pause)
}

// log logs an event, with what may be logged of a failure.
func (m *Mailer) log(level slog.Level, message string, failed *failure, about ...any) {
	var attrs []any
	if failed != nil {
		attrs = append(attrs, "stage", string(failed.stage))
		if failed.code != 0 {
			attrs = append(attrs, "smtp", failed.code)
		}
		if failed.timeout {
			attrs = append(attrs, "timeout", true)
		}
		if failed.detail != "" {
			attrs = append(attrs, "detail", failed.detail)
		}
	}
	m.config.Logger.Log(context.Background(), level, message, append(attrs, about...)...)
}

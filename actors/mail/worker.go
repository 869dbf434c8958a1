package mail

import (
	"context"
	"log/slog"
	"time"
)

// outcome is what became of a letter, as logs name it.
type outcome string

const (
	outcomeSent      outcome = "sent"
	outcomeRetry     outcome = "later"
	outcomeRefused   outcome = "refused"
	outcomeExhausted outcome = "tries used up"
	outcomeExpired   outcome = "code expired"
	outcomeReplaced  outcome = "replaced by a newer one"
	outcomeAbandoned outcome = "given up at the stop"
)

// forever is a wait that only a nudge ends.
const forever = time.Duration(-1)

// work is the one goroutine of a Mailer. It ends when Close gives up or nothing is left to do for it.
func (m *Mailer) work() {
	defer close(m.done)
	var line *session // kept while letters are due
	for {
		e, wait, over := m.next()
		if e != nil {
			line = m.attempt(line, e)
			continue
		}
		if line != nil {
			line.finish(m.ctx, nil)
			line = nil
			continue // a letter may have come meanwhile
		}
		if over {
			return
		}
		m.waitOrProbe(wait)
	}
}

// next is the letter to try now, or how long to wait for one; over says that none will come.
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

// abandon gives up, once Close was called, what is not waiting for its first try at a server that answers.
func (m *Mailer) abandon() []*entry {
	if !m.closing {
		return nil
	}
	all := m.ctx.Err() != nil || m.breaker.open()
	dropped := m.queue.removeWaiting(func(e *entry) bool { return all || e.attempts > 0 })
	m.counts.Abandoned += uint64(len(dropped))
	return dropped
}

// takeDue takes the first letter when its time has come. At the stop it has: what was to wait is abandoned already.
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

// wait waits for a nudge, the end, or so long.
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

// attempt makes one try of a letter, over the line that is open or a new one. It returns the line when it can be used again.
func (m *Mailer) attempt(line *session, e *entry) *session {
	var failed *failure
	if line == nil {
		line, failed = m.server.connect(m.ctx)
	}
	if failed == nil {
		failed = line.send(m.ctx, compose(e.mail, e.id, m.config))
	}
	m.finishAttempt(e, failed)
	if line != nil && (failed != nil || line.sent >= sessionEmailsMax) {
		line.finish(m.ctx, failed)
		return nil
	}
	return line
}

// finishAttempt decides what becomes of a letter after a try.
func (m *Mailer) finishAttempt(e *entry, failed *failure) {
	m.mu.Lock()
	e.attempts++
	now := m.config.Clock()
	changed := m.ctx.Err() == nil && m.breaker.record(failed, now) // what Close cuts is not the server's failure
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

// classify names the outcome of a try and counts it. Called with mu held.
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
	case e.attempts >= m.config.AttemptsMax:
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
		m.config.Logger.Debug("letter sent", "to", e.mail.To.ID().String(), "tries", e.attempts)
	case outcomeRetry:
		m.log(slog.LevelInfo, "letter tried in vain", failed, "to", e.mail.To.ID().String(), "tries", e.attempts, "next", e.nextAttempt)
	default:
		m.logDropped([]*entry{e}, result, failed)
	}
}

// logDropped says which letters will never be sent.
func (m *Mailer) logDropped(entries []*entry, why outcome, failed *failure) {
	for _, e := range entries {
		m.log(slog.LevelWarn, "letter dropped", failed, "to", e.mail.To.ID().String(), "tries", e.attempts, "why", string(why))
	}
}

func (m *Mailer) logBreaker(open bool, failed *failure) {
	if !open {
		m.config.Logger.Info("mail server answers again", "server", m.config.Addr)
		return
	}
	m.log(slog.LevelError, "mail server fails, letters wait", failed, "server", m.config.Addr, "pause", m.config.Breaker.Pause)
}

// log says what happened, after what a log may say of the failure behind it.
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

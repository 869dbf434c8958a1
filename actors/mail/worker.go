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
	outcomeLater     outcome = "later"
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
			line = m.try(line, e)
			continue
		}
		if line != nil {
			line.end(m.ctx, nil)
			line = nil
			continue // a letter may have come meanwhile
		}
		if over {
			return
		}
		m.rest(wait)
	}
}

// next is the letter to try now, or how long to wait for one; over says that none will come.
func (m *Mailer) next() (e *entry, wait time.Duration, over bool) {
	m.mu.Lock()
	now := m.config.Clock()
	expired := m.dropExpired(now)
	abandoned := m.abandon()
	e, wait = m.choose(now)
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
	dropped := m.queue.sweep(func(e *entry) bool { return all || e.tries > 0 })
	m.counts.Abandoned += uint64(len(dropped))
	return dropped
}

// choose takes the first letter when its time has come. At the stop it has: what was to wait is abandoned already.
func (m *Mailer) choose(now time.Time) (*entry, time.Duration) {
	first := m.queue.next()
	if first == nil {
		return nil, forever
	}
	ready := first.due
	if m.breaker.open() && m.breaker.until.After(ready) {
		ready = m.breaker.until
	}
	if ready.After(now) && !m.closing {
		return nil, ready.Sub(now)
	}
	first.underway = true
	return first, 0
}

// pause waits for a nudge, the end, or so long.
func (m *Mailer) pause(wait time.Duration) {
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

// try makes one try of a letter, over the line that is open or a new one. It returns the line when it can be used again.
func (m *Mailer) try(line *session, e *entry) *session {
	var failed *failure
	if line == nil {
		line, failed = m.server.open(m.ctx)
	}
	if failed == nil {
		failed = line.send(m.ctx, compose(e.letter, e.stamp, m.config))
	}
	m.settle(e, failed)
	if line != nil && (failed != nil || line.letters >= sessionLetters) {
		line.end(m.ctx, failed)
		return nil
	}
	return line
}

// settle decides what becomes of a letter after a try.
func (m *Mailer) settle(e *entry, failed *failure) {
	m.mu.Lock()
	e.tries++
	now := m.config.Clock()
	changed := m.ctx.Err() == nil && m.breaker.note(failed, now) // what Close cuts is not the server's failure
	open := m.breaker.open()
	result := m.judge(e, failed, now)
	if e.underway = false; result != outcomeLater {
		m.queue.remove(e)
	}
	m.mu.Unlock()
	m.logTry(e, result, failed)
	if changed {
		m.logBreaker(open, failed)
	}
}

// judge names the outcome of a try and counts it. Called with mu held.
func (m *Mailer) judge(e *entry, failed *failure, now time.Time) outcome {
	if failed == nil {
		m.counts.Sent++
		m.counts.LastSent = now
		return outcomeSent
	}
	m.counts.Failures++
	e.due = now.Add(m.delay(e.tries))
	switch {
	case failed.permanent():
		m.counts.Refused++
		return outcomeRefused
	case e.replaced:
		m.counts.Replaced++
		return outcomeReplaced
	case e.tries >= m.config.Attempts:
		m.counts.Exhausted++
		return outcomeExhausted
	case !e.due.Before(e.letter.Expires):
		m.counts.Expired++
		return outcomeExpired
	}
	return outcomeLater
}

func (m *Mailer) logTry(e *entry, result outcome, failed *failure) {
	switch result {
	case outcomeSent:
		m.config.Logger.Debug("letter sent", "to", e.letter.To.ID().String(), "tries", e.tries)
	case outcomeLater:
		m.log(slog.LevelInfo, "letter tried in vain", failed, "to", e.letter.To.ID().String(), "tries", e.tries, "next", e.due)
	default:
		m.logDropped([]*entry{e}, result, failed)
	}
}

// logDropped says which letters will never be sent.
func (m *Mailer) logDropped(entries []*entry, why outcome, failed *failure) {
	for _, e := range entries {
		m.log(slog.LevelWarn, "letter dropped", failed, "to", e.letter.To.ID().String(), "tries", e.tries, "why", string(why))
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

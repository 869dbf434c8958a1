package mail

import (
	"context"
	"time"

	"github.com/tasard/tasard/engine"
)

// fullHysteresis is the part of a full queue, a tenth, that must be free before it no longer counts as full.
const fullHysteresis = 10

// updateFull updates since when the queue is full. Called with mu held.
func (m *Mailer) updateFull(now time.Time) {
	switch size, most := len(m.queue), m.config.queueMax; {
	case size <= most-(most+fullHysteresis-1)/fullHysteresis:
		m.fullSince = time.Time{}
	case size >= most && m.fullSince.IsZero():
		m.fullSince = now
	}
}

// Condition reports whether emails are delivered, without blocking.
func (m *Mailer) Condition() engine.Condition {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.updateFull(m.config.Clock())
	switch failing := m.breaker.since; {
	case !m.fullSince.IsZero():
		return engine.Condition{
			Name: "mail", State: "full", Since: m.fullSince.Round(0).UTC(),
			Detail: "The mail queue is full, so no login code is accepted; keys go on working. Check the mail server.",
		}
	case !failing.IsZero():
		return engine.Condition{
			Name: "mail", State: "failing", Since: failing.Round(0).UTC(),
			Detail: "The mail server accepts no email, so login codes wait or expire; keys go on working. Check the server and the mail settings.",
		}
	}
	return engine.HealthyCondition("mail")
}

// waitOrProbe waits for a wake-up, the end or a time, and probes an unreachable server meanwhile.
func (m *Mailer) waitOrProbe(wait time.Duration) {
	m.mu.Lock()
	every := m.config.ProbeInterval
	looks := every > 0 && m.breaker.unreachable && !m.closing
	m.mu.Unlock()
	if !looks || wait != forever && wait <= every {
		m.wait(wait)
		return
	}
	m.wait(every)
	if m.ctx.Err() == nil && m.probe() {
		m.serverReachable()
	}
}

// probe reports whether the server accepts a connection.
func (m *Mailer) probe() bool {
	ctx, cancel := context.WithTimeout(m.ctx, m.config.ProbeInterval)
	defer cancel()
	conn, err := m.config.dial(ctx, "tcp", m.config.Addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// serverReachable makes the first email due, despite the breaker. Without one the server counts as healthy.
func (m *Mailer) serverReachable() {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, now := m.queue.next(), m.config.Clock()
	if first == nil {
		m.breaker = breaker{settings: m.config.breaker}
		return
	}
	m.breaker.unreachable, m.breaker.until = false, now
	if first.nextAttempt.After(now) {
		first.nextAttempt = now
	}
}

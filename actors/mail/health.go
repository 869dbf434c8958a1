package mail

import (
	"context"
	"time"

	"github.com/tasard/tasard/engine"
)

// fullHysteresis is how much of a queue that was full must be free again, so that it does not flap: a tenth.
const fullHysteresis = 10

// updateFull notes whether the queue is full. Called with mu held.
func (m *Mailer) updateFull(now time.Time) {
	switch size, most := len(m.queue), m.config.QueueMax; {
	case size <= most-(most+fullHysteresis-1)/fullHysteresis:
		m.fullSince = time.Time{}
	case size >= most && m.fullSince.IsZero():
		m.fullSince = now
	}
}

// Condition tells whether letters leave. It waits for nothing.
func (m *Mailer) Condition() engine.Condition {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.updateFull(m.config.Clock())
	switch failing := m.breaker.since; {
	case !m.fullSince.IsZero():
		return engine.Condition{
			Name: "mail", State: "full", Since: m.fullSince.Round(0).UTC(),
			Detail: "As many letters wait as may, so no login code is taken; keys go on working. Look at the mail server.",
		}
	case !failing.IsZero():
		return engine.Condition{
			Name: "mail", State: "failing", Since: failing.Round(0).UTC(),
			Detail: "The mail server takes no letters, so login codes wait or run out; keys go on working. Look at it, and at the settings of mail.",
		}
	}
	return engine.HealthyCondition("mail")
}

// waitOrProbe waits for a nudge, the end, or so long; while the server can't be reached it looks for it meanwhile.
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

// probe reports that the server accepts a connection.
func (m *Mailer) probe() bool {
	ctx, cancel := context.WithTimeout(m.ctx, m.config.ProbeInterval)
	defer cancel()
	conn, err := m.config.Dial(ctx, "tcp", m.config.Addr)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was said
	return true
}

// serverReachable lets the first letter try for all at once. Without any the server is taken for well until one says otherwise.
func (m *Mailer) serverReachable() {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, now := m.queue.next(), m.config.Clock()
	if first == nil {
		m.breaker = breaker{settings: m.config.Breaker}
		return
	}
	m.breaker.unreachable, m.breaker.until = false, now
	if first.nextAttempt.After(now) {
		first.nextAttempt = now
	}
}

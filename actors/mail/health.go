package mail

import (
	"context"
	"time"

	"github.com/tasard/tasard/engine"
)

// fullHysteresisDivisor says when a queue that was full no longer counts as full: when 1/fullHysteresisDivisor of its
// capacity is free again.
const fullHysteresisDivisor = 10

// updateFull updates Mailer.fullSince, the time since which the queue counts as full. The caller must hold Mailer.mu.
func (m *Mailer) updateFull(now time.Time) {
	switch size, capacity := len(m.queue), m.config.queueMax; {
	case size <= capacity-(capacity+fullHysteresisDivisor-1)/fullHysteresisDivisor:
		m.fullSince = time.Time{}
	case size >= capacity && m.fullSince.IsZero():
		m.fullSince = now
	}
}

// Condition reports whether the mailer can send emails. It does not wait for the server.
func (m *Mailer) Condition() engine.Condition {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.updateFull(m.config.Clock())
	switch failingSince := m.breaker.failingSince; {
	case !m.fullSince.IsZero():
		return engine.Condition{
			Name: "mail", State: "full", Since: m.fullSince.Round(0).UTC(),
			Detail: "The mail queue is full, so no login code is accepted; API keys still work. Check the mail server.",
		}
	case !failingSince.IsZero():
		return engine.Condition{
			Name: "mail", State: "failing", Since: failingSince.Round(0).UTC(),
			Detail: "The mail server accepts no email, so login codes wait or expire; API keys still work. Check the server and the mail settings.",
		}
	}
	return engine.HealthyCondition("mail")
}

// waitOrProbe waits like Mailer.wait. But if the server is unreachable, and the wait is longer than ProbeInterval, it
// waits only for ProbeInterval, and then tries once to connect to the server (probe).
func (m *Mailer) waitOrProbe(wait time.Duration) {
	m.mu.Lock()
	interval := m.config.ProbeInterval
	shouldProbe := interval > 0 && m.breaker.unreachable && !m.closing
	m.mu.Unlock()
	if !shouldProbe || wait != forever && wait <= interval {
		m.wait(wait)
		return
	}
	m.wait(interval)
	if m.ctx.Err() == nil && m.probe() {
		m.markReachable()
	}
}

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

// markReachable is called after a successful probe. It makes the next email due at once. An open circuit breaker does
// not delay this email. If no email waits, markReachable closes the circuit breaker.
func (m *Mailer) markReachable() {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, now := m.queue.next(), m.config.Clock()
	if first == nil {
		m.breaker = breaker{settings: m.config.breaker}
		return
	}
	m.breaker.unreachable, m.breaker.retryAt = false, now
	if first.nextAttempt.After(now) {
		first.nextAttempt = now
	}
}

package mail

import (
	"context"
	"time"

	"github.com/tasard/tasard/engine"
)

// fullEnds is how much of a queue that was full must be free again, so that it does not flap: a tenth.
const fullEnds = 10

// crowd notes whether the queue is full. Called with mu held.
func (m *Mailer) crowd(now time.Time) {
	switch size, most := len(m.queue), m.config.QueueMax; {
	case size <= most-(most+fullEnds-1)/fullEnds:
		m.full = time.Time{}
	case size >= most && m.full.IsZero():
		m.full = now
	}
}

// Condition tells whether letters leave. It waits for nothing.
func (m *Mailer) Condition() engine.Condition {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crowd(m.config.Clock())
	switch failing := m.breaker.since; {
	case !m.full.IsZero():
		return engine.Condition{
			Name: "mail", State: "full", Since: m.full.Round(0).UTC(),
			Detail: "As many letters wait as may, so no login code is taken; keys go on working. Look at the mail server.",
		}
	case !failing.IsZero():
		return engine.Condition{
			Name: "mail", State: "failing", Since: failing.Round(0).UTC(),
			Detail: "The mail server takes no letters, so login codes wait or run out; keys go on working. Look at it, and at the settings of mail.",
		}
	}
	return engine.Well("mail")
}

// rest waits for a nudge, the end, or so long; while the server can't be reached it looks for it meanwhile.
func (m *Mailer) rest(wait time.Duration) {
	m.mu.Lock()
	every := m.config.Probe
	looks := every > 0 && m.breaker.unreachable && !m.closing
	m.mu.Unlock()
	if !looks || wait != forever && wait <= every {
		m.pause(wait)
		return
	}
	m.pause(every)
	if m.ctx.Err() == nil && m.reaches() {
		m.found()
	}
}

// reaches reports that the server accepts a connection.
func (m *Mailer) reaches() bool {
	ctx, cancel := context.WithTimeout(m.ctx, m.config.Probe)
	defer cancel()
	conn, err := m.config.Dial(ctx, "tcp", m.config.Addr)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was said
	return true
}

// found lets the first letter try for all at once. Without any the server is taken for well until one says otherwise.
func (m *Mailer) found() {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, now := m.queue.next(), m.config.Clock()
	if first == nil {
		m.breaker = breaker{settings: m.config.Breaker}
		return
	}
	m.breaker.unreachable, m.breaker.until = false, now
	if first.due.After(now) {
		first.due = now
	}
}

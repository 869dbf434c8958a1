package mail

import (
	"context"
	"time"

	"github.com/tasard/tasard/engine"
)

// trouble is what goes wrong with letters, for Condition. Guarded by Mailer.mu.
type trouble struct {
	since       time.Time // of the first failure of the server in a row; zero = the last try was none
	unreachable bool      // the last one was that it can't be reached
	full        engine.Trouble
}

// note takes over the outcome of a try. Called with mu held.
func (t *trouble) note(failed *failure, now time.Time) {
	if failed == nil || !failed.ofServer() {
		t.since, t.unreachable = time.Time{}, false
		return
	}
	t.unreachable = failed.stage == stageConnect
	if t.since.IsZero() {
		t.since = now
	}
}

// fullEnds is how much of a queue that was full must be free again, so that it does not flap: a tenth.
const fullEnds = 10

// crowd notes whether the queue is full. Called with mu held.
func (m *Mailer) crowd(now time.Time) {
	switch size, most := m.queue.size(), m.config.QueueMax; {
	case size >= most:
		m.trouble.full.Begin(now)
	case size <= most-(most+fullEnds-1)/fullEnds:
		m.trouble.full.End()
	}
}

// Condition tells whether letters leave. It waits for nothing.
func (m *Mailer) Condition() engine.Condition {
	now := m.config.Clock()
	m.mu.Lock()
	m.crowd(now)
	failing := m.trouble.since
	m.mu.Unlock()
	if since, full := m.trouble.full.Since(now); full {
		return engine.Condition{
			Name: "mail", State: "full", Since: since,
			Detail: "As many letters wait as may, so no login code is taken; keys go on working. Look at the mail server.",
		}
	}
	if !failing.IsZero() {
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
	looks := every > 0 && m.trouble.unreachable && !m.closing
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
	now := m.config.Clock()
	m.trouble.unreachable = false
	m.breaker.until = now
	if !m.queue.hurry(now) {
		m.trouble.since, m.breaker.failures = time.Time{}, 0
	}
}

// hurry makes the first letter due; false when none waits.
func (q *queue) hurry(now time.Time) bool {
	first := q.next()
	if first == nil {
		return false
	}
	if first.due.After(now) {
		first.due = now // it stays the first
	}
	return true
}

package mail

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
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

// rejectedRecipientsMin is the number of recipients whose emails must be rejected, while none is accepted, until all
// emails count as rejected. A few users mistype their address.
const rejectedRecipientsMin = 3

// rejections are the emails that the server has rejected since it last accepted one. Mailer.mu guards them.
type rejections struct {
	recipients []account.Email // some of their recipients, each once
	ofSender   bool            // the server rejected the sender, so it would reject every email
	code       int             // newest SMTP status
	since      time.Time
}

// record notes the result of an attempt. Failures of the server say nothing about rejections.
func (r *rejections) record(to account.Email, fail *failure, now time.Time) {
	switch {
	case fail == nil:
		*r = rejections{}
		return
	case fail.isServerFailure():
		return
	case r.since.IsZero():
		r.since = now
	}
	r.code, r.ofSender = fail.code, r.ofSender || fail.ofSender
	if len(r.recipients) < rejectedRecipientsMin && !slices.Contains(r.recipients, to) {
		r.recipients = append(r.recipients, to)
	}
}

// ofAll reports whether the server seems to reject every email.
func (r *rejections) ofAll() bool {
	return r.ofSender || len(r.recipients) >= rejectedRecipientsMin
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
	case m.rejections.ofAll():
		return engine.Condition{
			Name: "mail", State: "refusing", Since: m.rejections.since.Round(0).UTC(),
			Detail: fmt.Sprintf("The mail server refuses every email, the last one with status %d, so login codes do not arrive; API keys still work. "+
				"Check what it demands of the sender --mail-from, the login and this machine; the log has each refusal.", m.rejections.code),
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

package mail

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// Mailer sends emails. Its methods are safe for concurrent use.
type Mailer struct {
	config Config
	dialer *dialer
	ctx    context.Context // canceled when Close stops waiting for the worker
	cancel context.CancelFunc
	wake   chan struct{} // makes the worker check the queue
	done   chan struct{} // closed when the worker has returned

	sent chan struct{} // receives a value, if there is room, when an email was sent

	mu         sync.Mutex // guards the fields below; never held during I/O
	queue      queue
	breaker    breaker
	rejections rejections
	fullSince  time.Time // time since which the queue counts as full (updateFull); zero = it is not full
	counts     Stats
	closing    bool // Close was called
}

// Stats counts emails since Open. Each email that Send has accepted is counted in exactly one of Waiting, Sent,
// Refused, Exhausted, Expired, Replaced and Abandoned.
type Stats struct {
	Waiting     int    // in the queue, including the email that is being sent
	Sent        uint64 // accepted by the server
	Refused     uint64 // rejected by the server with status 5xx
	Exhausted   uint64 // not sent: all attempts failed
	Expired     uint64 // not sent: the code expired before
	Replaced    uint64 // not sent: a newer email to the same address was queued
	Abandoned   uint64 // not sent: the mailer was closed
	Dropped     uint64 // not accepted by Send, because the queue was full
	Failures    uint64 // failed attempts
	CircuitOpen bool   // the circuit breaker is open
	LastSent    time.Time
}

// ErrClosed is the cause of Send's error after Close.
var ErrClosed = errors.New("mailer is closed")

// ErrFull is the cause of Send's error when the queue is full.
var ErrFull = errors.New("mail queue is full")

// retryAfter is the time after which the caller of Send should try again. The error of Send has it as RetryAfter.
const retryAfter = 30 * time.Second

// Open checks the configuration and starts the worker. It does not connect to the server, so a node can start while its
// mail server is down. Close must be called to stop the worker.
func Open(config Config) (*Mailer, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	server, err := newDialer(config)
	if err != nil {
		return nil, err
	}
	m := &Mailer{config: config, dialer: server, wake: make(chan struct{}, 1), done: make(chan struct{}), sent: make(chan struct{}, 1)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.breaker.settings = config.breaker
	go m.work()
	return m, nil
}

// SetPassword replaces Config.Password for new connections. It has no effect if Config.User is empty.
func (m *Mailer) SetPassword(password account.Secret) { m.dialer.password.Store(&password) }

// Send queues an email and returns at once. The error is ErrInvalidMail, or an *engine.Error with CodeOverloaded if the
// queue is full or the mailer is closed. Stats and the log show later whether the email was sent.
func (m *Mailer) Send(mail account.LoginMail) error {
	if err := checkMail(mail); err != nil {
		return err
	}
	expired, err := m.enqueue(mail)
	m.logDropped(expired, outcomeExpired, nil)
	return err
}

// enqueue queues an email. If the queue is full, it first removes expired emails, and returns them.
func (m *Mailer) enqueue(mail account.LoginMail) ([]*entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return nil, overloaded(ErrClosed)
	}
	now := m.config.Clock()
	id, err := newMessageID(m.config.Random, now)
	if err != nil {
		return nil, err
	}
	var expired []*entry
	if m.isFull(mail.To) {
		expired = m.dropExpired(now)
	}
	if m.isFull(mail.To) {
		m.counts.Dropped++
		m.updateFull(now)
		return expired, overloaded(ErrFull)
	}
	if m.queue.add(&entry{mail: mail, id: id, nextAttempt: now}) {
		m.counts.Replaced++
	}
	m.wakeWorker()
	return expired, nil
}

// isFull reports whether the queue has no room for an email to this address. An email that replaces another one needs
// no room.
func (m *Mailer) isFull(to account.Email) bool {
	return len(m.queue) >= m.config.queueMax && m.queue.indexOf(to) < 0
}

// dropExpired removes emails with an expired code from the queue. The caller must hold mu.
func (m *Mailer) dropExpired(now time.Time) []*entry {
	expired := m.queue.removeWaiting(func(e *entry) bool { return !now.Before(e.mail.Expires) })
	m.counts.Expired += uint64(len(expired))
	return expired
}

func overloaded(cause error) error {
	return &engine.Error{
		Code:       engine.CodeOverloaded,
		Message:    "Codes cannot be sent at the moment. Try again later.",
		RetryAfter: retryAfter,
		Cause:      cause,
	}
}

func (m *Mailer) wakeWorker() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Close stops the worker. From then on Send accepts no email. Before the worker stops, it makes one attempt for each
// queued email that it has not attempted yet. When ctx ends, when drainTimeout has passed, or when the server has
// accepted no email for silenceTimeout, Close closes the connection and drops the other emails. The error has the
// number of emails that were dropped.
func (m *Mailer) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closing = true
	m.wakeWorker()
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, m.config.drainTimeout)
	defer cancel()
	m.awaitDrained(ctx)
	m.cancel()
	<-m.done
	if abandoned := m.Stats().Abandoned; abandoned > 0 {
		return fmt.Errorf("close the mailer: unsent emails: %d", abandoned)
	}
	return nil
}

// awaitDrained waits until the worker has ended, until ctx ends, or until the server is silent.
func (m *Mailer) awaitDrained(ctx context.Context) {
	silence := time.NewTimer(m.config.silenceTimeout)
	defer silence.Stop()
	for {
		select {
		case <-m.sent:
			silence.Reset(m.config.silenceTimeout)
			continue
		case <-m.done:
		case <-ctx.Done():
		case <-silence.C:
		}
		return
	}
}

// Stats returns the counts so far.
func (m *Mailer) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := m.counts
	stats.Waiting = len(m.queue)
	stats.CircuitOpen = m.breaker.open()
	return stats
}

// backoff returns the delay before the next attempt to send an email that has failed attempts times. It is random, so
// that emails that failed at the same time are retried at different times. The caller must hold mu, because Random is
// not safe for concurrent use.
func (m *Mailer) backoff(attempts int) time.Duration {
	wait := m.config.backoffFirst
	for range attempts - 1 {
		if wait *= 2; wait >= m.config.backoffMax {
			break
		}
	}
	wait = min(wait, m.config.backoffMax)
	var raw [8]byte
	if _, err := io.ReadFull(m.config.Random, raw[:]); err != nil {
		return wait
	}
	return wait - time.Duration(binary.BigEndian.Uint64(raw[:])%uint64(wait/2+1))
}

// breaker is a circuit breaker. It opens after failureThreshold consecutive failures of the server. Mailer.mu guards
// it.
type breaker struct {
	settings     breakerSettings
	failures     int
	failingSince time.Time // time of the first of these failures; zero = no failure
	retryAt      time.Time // while open: time of the next attempt
	unreachable  bool      // the newest attempt could not connect to the server
}

// open reports whether the breaker is open. It stays open until an attempt succeeds, or until the server rejects only
// the email of the attempt.
func (b *breaker) open() bool { return b.failures >= b.settings.failureThreshold }

// record counts the result of an attempt, and reports whether this has opened or closed the breaker.
func (b *breaker) record(fail *failure, now time.Time) (changed bool) {
	wasOpen := b.open()
	if fail == nil || !fail.isServerFailure() {
		*b = breaker{settings: b.settings}
		return wasOpen
	}
	b.failures = min(b.failures+1, b.settings.failureThreshold)
	b.unreachable = fail.stage == stageConnect
	if b.failingSince.IsZero() {
		b.failingSince = now
	}
	if b.open() {
		b.retryAt = now.Add(b.settings.cooldown)
	}
	return !wasOpen && b.open()
}

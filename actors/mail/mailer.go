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

// Mailer sends emails. Its methods may be called concurrently.
type Mailer struct {
	config Config
	dialer *dialer
	ctx    context.Context // canceled when Close gives up or returns
	cancel context.CancelFunc
	wake   chan struct{} // tells the worker to check the queue
	done   chan struct{} // closed when the worker has returned

	mu        sync.Mutex // guards the fields below; never held during I/O
	queue     queue
	breaker   breaker
	fullSince time.Time // zero = not full
	counts    Stats
	closing   bool
}

// Stats counts the outcomes of emails since Open. Every accepted email is in exactly one of Waiting, Sent, Refused,
// Exhausted, Expired, Replaced and Abandoned.
type Stats struct {
	Waiting     int    // in the queue or being sent
	Sent        uint64 // accepted by the server
	Refused     uint64 // status 5xx for this email
	Exhausted   uint64 // no attempt left
	Expired     uint64 // the code expired first
	Replaced    uint64 // a newer email to the same address was queued
	Abandoned   uint64 // not sent before Close gave up
	Dropped     uint64 // not queued, because the queue was full
	Failures    uint64 // failed attempts
	CircuitOpen bool   // the breaker is open: no email is attempted
	LastSent    time.Time
}

// ErrClosed is the cause of Send's error after Close.
var ErrClosed = errors.New("mailer is closed")

// ErrFull is the cause of Send's error when the queue is full.
var ErrFull = errors.New("mail queue is full")

// retryAfter is the Retry-After of a request whose email was not queued.
const retryAfter = 30 * time.Second

// Open checks the settings and starts the worker, which Close stops. It does not connect, so a node can start while its
// mail server is down.
func Open(config Config) (*Mailer, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	server, err := newDialer(config)
	if err != nil {
		return nil, err
	}
	m := &Mailer{config: config, dialer: server, wake: make(chan struct{}, 1), done: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.breaker.settings = config.breaker
	go m.work()
	return m, nil
}

// SetPassword sets the password for later logins. It has no effect without a User.
func (m *Mailer) SetPassword(password account.Secret) { m.dialer.password.Store(&password) }

// Send queues an email and returns at once. The error is ErrInvalidMail, or an *engine.Error with CodeOverloaded when
// the queue is full or the mailer closed. Stats and the log show the outcome.
func (m *Mailer) Send(mail account.LoginMail) error {
	if err := checkMail(mail); err != nil {
		return err
	}
	expired, err := m.enqueue(mail)
	m.logDropped(expired, outcomeExpired, nil)
	return err
}

// enqueue queues an email. It returns the expired emails that it removed to make room.
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

// isFull reports whether there is no room for an email to this address. It may replace a waiting one.
func (m *Mailer) isFull(to account.Email) bool {
	return len(m.queue) >= m.config.queueMax && m.queue.indexOf(to) < 0
}

// dropExpired removes waiting emails whose code has expired. Called with mu held.
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

// wakeWorker makes the worker check the queue.
func (m *Mailer) wakeWorker() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Close stops accepting emails, attempts each queued email that has not been attempted yet once, and stops the
// worker. When ctx ends or the drain timeout has passed, it gives up and closes the connection. The error has the
// number of unsent emails. Their codes are lost.
func (m *Mailer) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closing = true
	m.wakeWorker()
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, m.config.drainTimeout)
	defer cancel()
	select {
	case <-m.done:
	case <-ctx.Done():
	}
	m.cancel()
	<-m.done
	if abandoned := m.Stats().Abandoned; abandoned > 0 {
		return fmt.Errorf("close the mailer: unsent emails: %d", abandoned)
	}
	return nil
}

// Stats returns the outcomes so far.
func (m *Mailer) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := m.counts
	stats.Waiting = len(m.queue)
	stats.CircuitOpen = m.breaker.open()
	return stats
}

// backoff returns the delay after a number of attempts, with jitter, so that emails that failed at the same time are
// retried at different times. Called with mu held, which guards Random.
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
		return wait // without jitter
	}
	return wait - time.Duration(binary.BigEndian.Uint64(raw[:])%uint64(wait/2+1))
}

// breaker is a circuit breaker, which opens after consecutive failures of the server. Guarded by Mailer.mu.
type breaker struct {
	settings     breakerSettings
	failures     int
	failingSince time.Time // time of the first failure; zero = no failure
	retryAt      time.Time // when open: time of the next attempt
	unreachable  bool      // the last failure was in stageConnect
}

// open reports whether the breaker is open. After the cooldown one email is attempted; a success closes the breaker.
func (b *breaker) open() bool { return b.failures >= b.settings.failureThreshold }

// record records the result of an attempt, and reports whether it opened or closed the breaker.
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

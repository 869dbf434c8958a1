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

// Mailer sends letters. Its methods are safe for concurrent use.
type Mailer struct {
	config Config
	server *server
	ctx    context.Context // ends when Close gives up
	cancel context.CancelFunc
	wake   chan struct{} // holds a token when the worker must look again
	done   chan struct{} // closed by the worker at its end

	mu        sync.Mutex // guards what follows; held for no longer than a look at the queue
	queue     queue
	breaker   breaker
	fullSince time.Time // since when the queue is; zero = it is not
	counts    Stats
	closing   bool
}

// Stats counts what became of letters since CircuitOpen. Every letter that Send took is in exactly one of Waiting, Sent, Refused,
// Exhausted, Expired, Replaced and Abandoned.
type Stats struct {
	Waiting     int    // in the queue or on their way
	Sent        uint64 // taken by the server
	Refused     uint64 // 5xx for this letter
	Exhausted   uint64 // no try left
	Expired     uint64 // the code ran out first
	Replaced    uint64 // by a newer letter to the same address
	Abandoned   uint64 // by Close
	Dropped     uint64 // not taken: the queue was full
	Failures    uint64 // tries that failed
	CircuitOpen bool   // the breaker is open: the server is left in peace
	LastSent    time.Time
}

// ErrClosed is the cause of Send's error after Close.
var ErrClosed = errors.New("mailer is closed")

// ErrFull is the cause of Send's error when QueueMax letters wait.
var ErrFull = errors.New("mail queue is full")

// retryAfter is what a caller is told to wait when no letter is taken.
const retryAfter = 30 * time.Second

// CircuitOpen checks the settings and starts the worker; Close ends it. It does not connect: a mail server that is down must not keep
// the service from starting.
func Open(config Config) (*Mailer, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	server, err := newServer(config)
	if err != nil {
		return nil, err
	}
	m := &Mailer{config: config, server: server, wake: make(chan struct{}, 1), done: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.breaker.settings = config.Breaker
	go m.work()
	return m, nil
}

// SetPassword is the password of the logins from now on. It means nothing without a User.
func (m *Mailer) SetPassword(password account.Secret) { m.server.password.Store(&password) }

// Send takes a letter and returns at once. The error is ErrInvalidMail, or an *engine.Error with CodeOverloaded when the queue is
// full or the mailer closed. What happens to the letter afterwards is in Stats and the log.
func (m *Mailer) Send(letter account.LoginMail) error {
	if err := checkMail(letter); err != nil {
		return err
	}
	dropped, err := m.enqueue(letter)
	m.logDropped(dropped, outcomeExpired, nil)
	return err
}

// enqueue puts the letter into the queue; it returns the expired ones that made room.
func (m *Mailer) enqueue(letter account.LoginMail) ([]*entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return nil, overloaded(ErrClosed)
	}
	now := m.config.Clock()
	stamp, err := newMessageID(m.config.Random, now)
	if err != nil {
		return nil, err
	}
	var dropped []*entry
	if m.isFull(letter.To) {
		dropped = m.dropExpired(now)
	}
	if m.isFull(letter.To) {
		m.counts.Dropped++
		m.updateFull(now)
		return dropped, overloaded(ErrFull)
	}
	if m.queue.add(&entry{mail: letter, id: stamp, nextAttempt: now}) {
		m.counts.Replaced++
	}
	m.wakeWorker()
	return dropped, nil
}

// isFull reports that a letter to this address would be one too many.
func (m *Mailer) isFull(to account.Email) bool {
	return len(m.queue) >= m.config.QueueMax && m.queue.indexOf(to) < 0
}

// dropExpired takes out the letters that wait and whose codes have run out. Called with mu held.
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

// wakeWorker makes the worker look again. One token is enough: there is one worker.
func (m *Mailer) wakeWorker() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Close takes no more letters, gives those that wait for their first try that one try, and ends the worker. It waits until
// ctx ends or Timeouts.Drain is over, then cuts the connection. The error says how many letters Close gave up; their codes
// are void anyhow once the process has ended.
func (m *Mailer) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closing = true
	m.wakeWorker()
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, m.config.Timeouts.Drain)
	defer cancel()
	select {
	case <-m.done:
	case <-ctx.Done():
	}
	m.cancel()
	<-m.done
	if abandoned := m.Stats().Abandoned; abandoned > 0 {
		return fmt.Errorf("close the mailer: %d letters were not sent", abandoned)
	}
	return nil
}

// Stats is what became of the letters so far.
func (m *Mailer) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := m.counts
	stats.Waiting = len(m.queue)
	stats.CircuitOpen = m.breaker.open()
	return stats
}

// backoff is how long a letter waits after so many tries. Chance keeps letters that failed together from coming back together.
// Called with mu held, which guards Random.
func (m *Mailer) backoff(tries int) time.Duration {
	wait := m.config.Backoff.First
	for range tries - 1 {
		if wait *= 2; wait >= m.config.Backoff.Max {
			break
		}
	}
	wait = min(wait, m.config.Backoff.Max)
	var raw [8]byte
	if _, err := io.ReadFull(m.config.Random, raw[:]); err != nil {
		return wait // a broken source of chance costs the jitter, no letter
	}
	return wait - time.Duration(binary.BigEndian.Uint64(raw[:])%uint64(wait/2+1))
}

// breaker counts failures of the server in a row, and leaves it in peace when there were many. Guarded by Mailer.mu.
type breaker struct {
	settings    Breaker
	failures    int
	since       time.Time // of the first of them; zero without one
	until       time.Time // when the server may be tried again
	unreachable bool      // the last failure was that it can't be reached
}

// connect reports that the last tries failed often enough. When its pause is over, the next letter tries for all; a success closes it.
func (b *breaker) open() bool { return b.failures >= b.settings.Failures }

// record counts the outcome of a try; it reports whether that opened or closed the breaker.
func (b *breaker) record(failed *failure, now time.Time) (changed bool) {
	before := b.open()
	if failed == nil || !failed.isServerFailure() {
		*b = breaker{settings: b.settings}
		return before
	}
	b.failures = min(b.failures+1, b.settings.Failures)
	b.unreachable = failed.stage == stageConnect
	if b.since.IsZero() {
		b.since = now
	}
	if b.open() {
		b.until = now.Add(b.settings.Pause)
	}
	return !before && b.open()
}

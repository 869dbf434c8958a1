package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Pauses before a try that nobody said a time for: 250 ms, doubled each time, at most 5 s; each between half of it and all of it.
const (
	backoffFirst = 250 * time.Millisecond
	backoffMax   = 5 * time.Second
)

// sendWithRetries sends a call until it is answered, or refused for good.
func (c *Client) sendWithRetries(ctx context.Context, q *call) ([]byte, error) {
	for tries := 0; ; tries++ {
		body, err := c.sendOnce(ctx, q)
		if err == nil {
			return body, nil
		}
		if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w (%w)", err, ended)
		}
		wait, again := c.retryDelay(q, err, tries)
		if !again || ctx.Err() != nil || tries >= c.config.Retries || wait > c.config.WaitMax || deadlineBefore(ctx, wait) {
			return nil, q.outcomeUnknown(err)
		}
		if waited := c.config.Wait(ctx, wait); waited != nil {
			return nil, fmt.Errorf("%w; waiting for one more try: %w", err, waited)
		}
	}
}

// retryDelay is how long to wait before one more try; false when there must be none.
func (c *Client) retryDelay(q *call, err error, tries int) (time.Duration, bool) {
	var refused *Error
	switch {
	case errors.As(err, &refused) && refused.Code == CodeRequestedTooSoon:
		return 0, false // a code is on its way, and the next would void it (K2)
	case errors.As(err, &refused) && refused.Code == CodeNone && !q.idempotent:
		return 0, false // not the node refused it: nobody knows whether it has got there
	case errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests && refused.RetryAfter > 0:
		return refused.RetryAfter, true
	case errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable && refused.RetryAfter > 0:
		return refused.RetryAfter + c.jitter(refused.RetryAfter/4), true // it refuses many at once: not all come back at once
	case errors.As(err, &refused) && refused.Status >= http.StatusInternalServerError, errors.Is(err, ErrNoResponse):
		most := min(backoffMax, backoffFirst<<min(tries, 10))
		return most/2 + c.jitter(most/2), q.idempotent
	}
	return 0, false
}

// fixedRandom is a time between nothing and most.
func (c *Client) jitter(most time.Duration) time.Duration {
	var bytes [8]byte
	if _, err := io.ReadFull(c.config.Random, bytes[:]); err != nil || most <= 0 {
		return most // without chance everybody waits alike: that is late, not wrong
	}
	return time.Duration(binary.LittleEndian.Uint64(bytes[:])>>1) % most
}

// deadlineBefore tells whether the deadline of a context comes before the wait is over. The context itself looks at the clock.
func deadlineBefore(ctx context.Context, wait time.Duration) bool {
	deadline, limited := ctx.Deadline()
	if !limited {
		return false
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	over, _ := waiting.Deadline()
	return !over.Before(deadline)
}

// outcomeUnknown tells who sent something that he can't take back what is unknown.
func (q *call) outcomeUnknown(err error) error {
	if q.idempotent || !errors.Is(err, ErrNoResponse) {
		return err
	}
	return fmt.Errorf("%w; it may have been done: look before you send it again", err)
}

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

// Backoff: 250 ms, doubled each time, at most 5 s. The wait is random between half of it and all of it.
const (
	backoffFirst = 250 * time.Millisecond
	backoffMax   = 5 * time.Second
)

// sendWithRetries sends a call until it succeeds or must not be retried.
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

// retryDelay returns the wait before the next try, or false if there must be none.
func (c *Client) retryDelay(q *call, err error, tries int) (time.Duration, bool) {
	var refused *Error
	switch {
	case errors.As(err, &refused) && refused.Code == CodeRequestedTooSoon:
		return 0, false // a code was sent, and the next one would void it
	case errors.As(err, &refused) && refused.Code == CodeNone && !q.idempotent:
		return 0, false // a proxy refused it; the node may have executed it
	case errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests && refused.RetryAfter > 0:
		return refused.RetryAfter, true
	case errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable && refused.RetryAfter > 0:
		return refused.RetryAfter + c.jitter(refused.RetryAfter/4), true // spreads the retries of many clients
	case errors.As(err, &refused) && refused.Status >= http.StatusInternalServerError, errors.Is(err, ErrNoResponse):
		most := min(backoffMax, backoffFirst<<min(tries, 10))
		return most/2 + c.jitter(most/2), q.idempotent
	}
	return 0, false
}

// jitter returns a random duration below most.
func (c *Client) jitter(most time.Duration) time.Duration {
	var bytes [8]byte
	if _, err := io.ReadFull(c.config.Random, bytes[:]); err != nil || most <= 0 {
		return most // not random, but safe
	}
	return time.Duration(binary.LittleEndian.Uint64(bytes[:])>>1) % most
}

// deadlineBefore reports whether the context ends before the wait does.
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

// outcomeUnknown adds to an error that a request may have been executed.
func (q *call) outcomeUnknown(err error) error {
	if q.idempotent || !errors.Is(err, ErrNoResponse) {
		return err
	}
	return fmt.Errorf("%w; it may have been done: look before you send it again", err)
}

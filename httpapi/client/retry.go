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

// The backoff is 250 ms at first and doubles with each attempt up to 5 s. The wait is a random duration between half
// of the backoff and all of it.
const (
	backoffFirst = 250 * time.Millisecond
	backoffMax   = 5 * time.Second
)

// sendWithRetries sends a call until it succeeds or must not be retried.
func (c *Client) sendWithRetries(ctx context.Context, q *call) ([]byte, error) {
	for attempt := 0; ; attempt++ {
		body, err := c.sendOnce(ctx, q)
		if err == nil {
			return body, nil
		}
		if ctxErr := ctx.Err(); ctxErr != nil && !errors.Is(err, ctxErr) {
			err = fmt.Errorf("%w (%w)", err, ctxErr)
		}
		wait, retry := c.retryDelay(q, err, attempt)
		if !retry || ctx.Err() != nil || attempt >= c.config.Retries || wait > c.config.WaitMax || deadlineBefore(ctx, wait) {
			return nil, q.outcomeUnknown(err)
		}
		if waitErr := c.config.Wait(ctx, wait); waitErr != nil {
			return nil, fmt.Errorf("%w; waiting for one more try: %w", err, waitErr)
		}
	}
}

// retryDelay returns the wait before the next attempt, or false if the call must not be retried.
func (c *Client) retryDelay(q *call, err error, attempt int) (time.Duration, bool) {
	var apiErr *Error
	switch {
	case errors.As(err, &apiErr) && apiErr.Code == CodeRequestedTooSoon:
		return 0, false // a code was sent, and a new code would invalidate it
	case errors.As(err, &apiErr) && apiErr.Code == CodeNone && !q.idempotent:
		return 0, false // the error is from a proxy; the node may have executed the call
	case errors.As(err, &apiErr) && apiErr.Status == http.StatusTooManyRequests && apiErr.RetryAfter > 0:
		return apiErr.RetryAfter, true
	case errors.As(err, &apiErr) && apiErr.Status == http.StatusServiceUnavailable && apiErr.RetryAfter > 0:
		return apiErr.RetryAfter + c.jitter(apiErr.RetryAfter/4), true // so that many clients do not retry at once
	case errors.As(err, &apiErr) && apiErr.Status >= http.StatusInternalServerError, errors.Is(err, ErrNoResponse):
		limit := min(backoffMax, backoffFirst<<min(attempt, 10))
		return limit/2 + c.jitter(limit/2), q.idempotent
	}
	return 0, false
}

// jitter returns a random duration below limit, or limit itself if Random fails.
func (c *Client) jitter(limit time.Duration) time.Duration {
	var bytes [8]byte
	if _, err := io.ReadFull(c.config.Random, bytes[:]); err != nil || limit <= 0 {
		return limit
	}
	return time.Duration(binary.LittleEndian.Uint64(bytes[:])>>1) % limit
}

// deadlineBefore reports whether the deadline of the context is before the end of the wait.
func deadlineBefore(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	if !ok {
		return false
	}
	waitCtx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	waitEnd, _ := waitCtx.Deadline()
	return !waitEnd.Before(deadline)
}

// outcomeUnknown adds a warning to the error of a request that may have been executed.
func (q *call) outcomeUnknown(err error) error {
	if q.idempotent || !errors.Is(err, ErrNoResponse) {
		return err
	}
	return fmt.Errorf("%w; the request may have been executed: check before you send it again", err)
}

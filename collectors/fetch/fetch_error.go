package fetch

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// fetchError is the failure of a request, with the data for doWithRetries.
type fetchError struct {
	failure    *source.Failure
	status     int           // HTTP status; 0 = no response
	retryable  bool          // the same request may succeed a few seconds later
	retryAfter time.Duration // from the Retry-After header; 0 = no such header
}

func newFetchError(kind source.FailureKind, format string, args ...any) *fetchError {
	return &fetchError{failure: source.Failf(kind, format, args...)}
}

func (f *fetchError) withCause(cause error) *fetchError {
	f.failure.Cause = cause
	return f
}

func (f *fetchError) asRetryable() *fetchError {
	f.retryable = true
	return f
}

// exchangeError classifies err, the error of a request without a complete response. action names the request in
// Failure.Detail.
func (s *session) exchangeError(ctx context.Context, err error, action string) *fetchError {
	// The end of a Fetch may close a connection before it ends the context of the request.
	ended := cmp.Or(s.ended(), ctx.Err())
	switch {
	case errors.Is(ended, context.Canceled):
		return newFetchError(source.Network, "%s: the fetch was cancelled", action).withCause(ended)
	case isTimeout(ended, err):
		return newFetchError(source.Timeout, "%s: no complete response in time (at most %v for a request, %v for a fetch)",
			action, s.client.config.RequestTimeout, s.client.config.FetchTimeout).withCause(err).asRetryable()
	case errors.Is(err, http.ErrSchemeMismatch):
		return newFetchError(source.TLS, "%s: the port speaks plain HTTP, want TLS", action).withCause(err)
	case strings.Contains(err.Error(), "tls: "): // not all errors of crypto/tls have a type; TestD4_Hostile has them
		return newFetchError(source.TLS, "%s: %s", action, tlsReason(err)).withCause(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return newFetchError(source.Network, "%s: the response broke off", action).withCause(err).asRetryable()
	default:
		return newFetchError(source.Network, "%s: %v", action, err).withCause(err).asRetryable()
	}
}

func isTimeout(ended, err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(ended, context.DeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

func tlsReason(err error) string {
	if errors.As(err, new(x509.UnknownAuthorityError)) {
		return err.Error() + "; if the server omits an intermediate certificate, name it in caFile"
	}
	return err.Error()
}

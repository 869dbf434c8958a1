package fetch

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
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
	body       []byte        // of the response, if it came with the status
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
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return newFetchError(source.Network, "%s: the fetch was cancelled", action).withCause(ctx.Err())
	case isTimeout(ctx, err):
		return newFetchError(source.Timeout, "%s: no complete response in time (at most %v for a request, %v for a fetch)",
			action, s.client.config.RequestTimeout, s.client.config.FetchTimeout).withCause(err).asRetryable()
	case errors.Is(err, http.ErrSchemeMismatch):
		return newFetchError(source.TLS, "%s: the port speaks plain HTTP, want TLS", action).withCause(err)
	case strings.Contains(err.Error(), "tls: "): // not all errors of crypto/tls have a type; TestD4_Hostile has them
		return newFetchError(source.TLS, "%s: %s", action, tlsReason(err)).withCause(err)
	case isGzipDamage(err):
		return newFetchError(source.WrongContent, "%s: the gzip encoding of the response is damaged: %v", action, err).withCause(err)
	case isHeaderTooLarge(err):
		return newFetchError(source.WrongContent, "%s: the response header is larger than %d bytes", action, headerBytesMax).withCause(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return newFetchError(source.Network, "%s: the response broke off", action).withCause(err).asRetryable()
	default:
		return newFetchError(source.Network, "%s: %v", action, err).withCause(err).asRetryable()
	}
}

func isTimeout(ctx context.Context, err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

func tlsReason(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		plain     tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return "unknown authority: " + authority.Error() + "; if the server omits an intermediate certificate, name it in caFile"
	case errors.As(err, &name):
		return "wrong name: " + name.Error()
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "expired: " + invalid.Error()
	case errors.As(err, &plain):
		return "the port does not speak TLS: " + plain.Error()
	default:
		return err.Error()
	}
}

func isGzipDamage(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &corrupt)
}

// isHeaderTooLarge compares the text of the error, because net/http exports no type for it. TestD4_Hostile fails if the
// text changes.
func isHeaderTooLarge(err error) bool {
	return errors.Is(err, bufio.ErrTooLong) || strings.Contains(err.Error(), "response headers exceeded")
}

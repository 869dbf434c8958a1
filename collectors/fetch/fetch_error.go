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

// fetchError is a failure with what the retry must know of it.
type fetchError struct {
	failure    *source.Failure
	status     int           // of the answer, 0 = there was none
	retryable  bool          // it may go away by itself within seconds
	retryAfter time.Duration // what Retry-After asks for, 0 = nothing
}

func newFetchError(kind source.FailureKind, format string, args ...any) *fetchError {
	return &fetchError{failure: source.Failf(kind, format, args...)}
}

// withCause keeps the cause for errors.Is and errors.As.
func (f *fetchError) withCause(cause error) *fetchError {
	f.failure.Cause = cause
	return f
}

// asRetryable marks a fault that another try can find gone.
func (f *fetchError) asRetryable() *fetchError {
	f.retryable = true
	return f
}

// exchangeError says why a request got no whole answer. handshake is the error of the TLS handshake, nil = it went well or there was
// none; what says what was being done.
func exchangeError(ctx context.Context, err, handshake error, what string) *fetchError {
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return newFetchError(source.Network, "%s: the fetch was ended from outside", what).withCause(err)
	case isTimeout(ctx, err):
		return newFetchError(source.Timeout, "%s: no whole answer in time", what).withCause(err).asRetryable()
	case handshake != nil && !isConnectionLoss(handshake):
		return newFetchError(source.TLS, "%s: %s", what, handshakeReason(handshake)).withCause(err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return newFetchError(source.TLS, "%s: the port speaks plain HTTP, found where TLS was wanted", what).withCause(err)
	case isGzipDamage(err):
		return newFetchError(source.WrongContent, "%s: the gzip packing of the answer is damaged: %v", what, err).withCause(err)
	case isHeaderTooLarge(err):
		return newFetchError(source.WrongContent, "%s: the header of the answer is larger than %d bytes", what, headerBytesMax).withCause(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return newFetchError(source.Network, "%s: the answer broke off", what).withCause(err).asRetryable()
	default:
		return newFetchError(source.Network, "%s: %v", what, err).withCause(err).asRetryable()
	}
}

func isTimeout(ctx context.Context, err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// isConnectionLoss tells a handshake that the network ended from one that either end refused.
func isConnectionLoss(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) {
		return true
	}
	var operation *net.OpError
	return errors.As(err, &operation) && (operation.Op == "read" || operation.Op == "write")
}

// handshakeReason says what is wrong with the certificate, and what can be done.
func handshakeReason(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		plain     tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return "unknown authority: " + authority.Error() + "; if the server forgets an intermediate certificate, name it in caFile"
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

// isHeaderTooLarge goes by the text, because the transport gives this error no type; TestD4_HeaderFlood notices when the text changes.
func isHeaderTooLarge(err error) bool {
	return errors.Is(err, bufio.ErrTooLong) || strings.Contains(err.Error(), "response headers exceeded")
}

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

// fault is a failure with what the retry must know of it.
type fault struct {
	failure *source.Failure
	status  int           // of the answer, 0 = there was none
	heals   bool          // it may go away by itself within seconds
	after   time.Duration // what Retry-After asks for, 0 = nothing
}

func newFault(kind source.FailureKind, format string, args ...any) *fault {
	return &fault{failure: source.Fail(kind, format, args...)}
}

// because keeps the cause for errors.Is and errors.As.
func (f *fault) because(cause error) *fault {
	f.failure.Cause = cause
	return f
}

// mayHeal marks a fault that another try can find gone.
func (f *fault) mayHeal() *fault {
	f.heals = true
	return f
}

// brokenExchange says why a request got no whole answer. handshake is the error of the TLS handshake, nil = it went well or there was
// none; what says what was being done.
func brokenExchange(ctx context.Context, err, handshake error, what string) *fault {
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return newFault(source.Network, "%s: the fetch was ended from outside", what).because(err)
	case isTimeout(ctx, err):
		return newFault(source.Timeout, "%s: no whole answer in time", what).because(err).mayHeal()
	case handshake != nil && !isConnectionLoss(handshake):
		return newFault(source.TLS, "%s: %s", what, handshakeReason(handshake)).because(err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return newFault(source.TLS, "%s: the port speaks plain HTTP, found where TLS was wanted", what).because(err)
	case isPackingDamage(err):
		return newFault(source.WrongContent, "%s: the gzip packing of the answer is damaged: %v", what, err).because(err)
	case isTooMuchHeader(err):
		return newFault(source.WrongContent, "%s: the header of the answer is larger than %d bytes", what, headerBytesMax).because(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return newFault(source.Network, "%s: the answer broke off", what).because(err).mayHeal()
	default:
		return newFault(source.Network, "%s: %v", what, err).because(err).mayHeal()
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

func isPackingDamage(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &corrupt)
}

// isTooMuchHeader goes by the text, because the transport gives this error no type; TestD4_HeaderFlood notices when the text changes.
func isTooMuchHeader(err error) bool {
	return errors.Is(err, bufio.ErrTooLong) || strings.Contains(err.Error(), "response headers exceeded")
}

package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/params"
)

const (
	internalMessage  = "Something went wrong on our side. Report the request id if it goes on."
	malformedMessage = "The request is not well-formed HTTP/1.1. The connection is closed."
	timeoutMessage   = "The request did not arrive in time. The connection is closed."
	headersMessage   = "Request line and headers are too long. The connection is closed."
	bodyMessage      = "The request body is too long. The connection is closed."
	chunkedMessage   = "Transfer-Encoding is not understood here: send a body with Content-Length. The connection is closed."
)

// retryAfterDefault is the Retry-After of a 429 or 503 whose engine.Error has none.
const retryAfterDefault = time.Second

type codeStatus struct {
	code   engine.Code
	status int
}

// codesMax is the length of codes.
const codesMax = 26

// codes returns the codes of API errors with their HTTP statuses, in the order of Stats.Errors.
func codes() [codesMax]codeStatus {
	return [...]codeStatus{
		{engine.CodeInvalidParameters, fasthttp.StatusBadRequest},
		{engine.CodeMalformedRequest, fasthttp.StatusBadRequest},
		{engine.CodeRequestTimeout, fasthttp.StatusRequestTimeout},
		{engine.CodeHeadersTooLarge, fasthttp.StatusRequestHeaderFieldsTooLarge},
		{engine.CodeMissingKey, fasthttp.StatusUnauthorized},
		{engine.CodeInvalidKey, fasthttp.StatusUnauthorized},
		{engine.CodeRevokedKey, fasthttp.StatusUnauthorized},
		{engine.CodeAccountSuspended, fasthttp.StatusUnauthorized},
		{engine.CodeInvalidCode, fasthttp.StatusUnauthorized},
		{engine.CodeInvalidSession, fasthttp.StatusUnauthorized},
		{engine.CodeNotFound, fasthttp.StatusNotFound},
		{engine.CodeInstitutionNotFound, fasthttp.StatusNotFound},
		{engine.CodeMethodNotAllowed, fasthttp.StatusMethodNotAllowed},
		{engine.CodeKeyLimitReached, fasthttp.StatusConflict},
		{engine.CodePayloadTooLarge, fasthttp.StatusRequestEntityTooLarge},
		{engine.CodeUnsupportedMediaType, fasthttp.StatusUnsupportedMediaType},
		{engine.CodeRateLimited, fasthttp.StatusTooManyRequests},
		{engine.CodeQuotaExceeded, fasthttp.StatusTooManyRequests},
		{engine.CodeRequestedTooSoon, fasthttp.StatusTooManyRequests},
		{engine.CodeInternalError, fasthttp.StatusInternalServerError},
		{engine.CodeNotImplemented, fasthttp.StatusNotImplemented},
		{engine.CodeDataUnavailable, fasthttp.StatusServiceUnavailable},
		{engine.CodeMailUnavailable, fasthttp.StatusServiceUnavailable},
		{engine.CodeOverloaded, fasthttp.StatusServiceUnavailable},
		{engine.CodeReadOnly, fasthttp.StatusServiceUnavailable},
		{engine.CodeNoMajority, fasthttp.StatusServiceUnavailable},
	}
}

// codeIndex returns the index of a code in codes, or -1.
func codeIndex(code engine.Code) int {
	for i, known := range codes() {
		if known.code == code {
			return i
		}
	}
	return -1
}

// status returns the HTTP status of a code, or false if the code is not in codes.
func status(code engine.Code) (int, bool) {
	index := codeIndex(code)
	if index < 0 {
		return 0, false
	}
	return codes()[index].status, true
}

// answerError answers with an error of Config.Service, Config.Accounts or Config.Admitter. An error without a known
// code becomes a 500. The cause is logged, but not sent.
func (s *Server) answerError(ctx *fasthttp.RequestCtx, err error) {
	s.startResponse(ctx)
	var named *engine.Error
	if !errors.As(err, &named) {
		named = &engine.Error{Code: engine.CodeInternalError, Cause: err}
	}
	code, message := named.Code, named.Message
	answered, known := status(code)
	if !known || code == engine.CodeInternalError {
		code, message, answered = engine.CodeInternalError, internalMessage, fasthttp.StatusInternalServerError
	}
	if answered == fasthttp.StatusInternalServerError || named.Cause != nil {
		s.config.Logger.LogAttrs(context.Background(), slog.LevelError, "a request could not be answered",
			slog.String("requestId", string(s.idOf(ctx))), slog.String("code", string(code)), slog.String("cause", err.Error()))
	}
	if code == engine.CodeOverloaded && !isAccountTarget(ctx.Request.Header.RequestURI()) { // not for account operations: a full mail queue gives the same code
		s.load.noteShed()
	}
	switch answered {
	case fasthttp.StatusServiceUnavailable, fasthttp.StatusTooManyRequests:
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, retryAfter(named.RetryAfter))
	case fasthttp.StatusUnauthorized:
		s.challenge(ctx, code)
	}
	s.reject(ctx, code, message)
}

// retryAfter formats Retry-After in whole seconds, rounded up and at least 1.
func retryAfter(wait time.Duration) string {
	if wait <= 0 {
		wait = retryAfterDefault
	}
	return strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)
}

// reject answers with an API error without details.
func (s *Server) reject(ctx *fasthttp.RequestCtx, code engine.Code, message string) {
	s.rejectWithDetails(ctx, code, message, nil)
}

// rejectWithDetails answers with an API error. It panics if the code is not in codes.
func (s *Server) rejectWithDetails(ctx *fasthttp.RequestCtx, code engine.Code, message string, details []params.Problem) {
	answered, known := status(code)
	if !known {
		panic("httpapi: no status for the code " + string(code))
	}
	s.counters.countCode(code)
	s.startResponse(ctx)
	ctx.SetStatusCode(answered)
	ctx.Response.ResetBody()
	body := ctx.Response.SwapBody(nil)[:0]
	ctx.Response.SwapBody(appendError(body, code, message, string(s.idOf(ctx)), details))
	s.gzipError(ctx)
}

// idOf returns the request id that startResponse set, or nil if startResponse was not called.
func (s *Server) idOf(ctx *fasthttp.RequestCtx) []byte {
	return ctx.Response.Header.PeekCanonical(bytesOf(headerRequestID))
}

func appendError(dst []byte, code engine.Code, message, requestID string, details []params.Problem) []byte {
	dst = append(dst, `{"error":{`...)
	dst = encode.Field(dst, "code", string(code))
	dst = encode.Field(dst, "message", message)
	dst = encode.Field(dst, "requestId", requestID)
	if len(details) > 0 {
		dst = append(encode.Name(dst, "details"), '[')
		for _, d := range details {
			dst = append(encode.Comma(dst), `{"path":[`...)
			dst = encode.Text(dst, d.Name)
			if d.Index > 0 {
				dst = strconv.AppendInt(append(dst, ','), int64(d.Index), 10)
			}
			dst = append(dst, ']')
			dst = encode.Field(dst, "message", d.Name+" "+d.Message)
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, `}}`...)
}

// rejectPanic answers 500 and logs the panic with the request id.
func (s *Server) rejectPanic(ctx *fasthttp.RequestCtx, cause any) {
	stack := debug.Stack()
	if express, ok := cause.(*expressPanic); ok {
		cause, stack = express.cause, express.stack
	}
	ctx.Response.SkipBody = ctx.IsHead()
	s.restartResponse(ctx)
	s.config.Logger.LogAttrs(context.Background(), slog.LevelError, "a request ended in a panic", slog.String("requestId", string(s.idOf(ctx))),
		slog.Any("cause", cause), slog.String("stack", string(stack)))
	s.reject(ctx, engine.CodeInternalError, internalMessage)
}

// rejectUnreadable answers a request that the HTTP library (fasthttp) could not read, and closes the connection. It
// closes a connection that was never used without a response.
func (s *Server) rejectUnreadable(ctx *fasthttp.RequestCtx, err error) {
	s.restartResponse(ctx)
	ctx.Response.SkipBody = ctx.IsHead()
	var small *fasthttp.ErrSmallBuffer
	var network net.Error
	timedOut := errors.As(err, &network) && network.Timeout()
	if c, ok := ctx.Conn().(*conn.Conn); ok {
		if timedOut && !c.Used() {
			_ = c.Close() // so the library's response is not sent
			return
		}
		c.User = nil
	}
	closeUnread(ctx)
	switch {
	case errors.As(err, &small):
		s.reject(ctx, engine.CodeHeadersTooLarge, headersMessage)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		s.reject(ctx, engine.CodePayloadTooLarge, bodyMessage)
	case timedOut:
		s.reject(ctx, engine.CodeRequestTimeout, timeoutMessage)
	default:
		s.reject(ctx, engine.CodeMalformedRequest, malformedMessage)
	}
	s.finish(ctx, s.newRequestState(nil))
}

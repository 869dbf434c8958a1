package httpapi

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
)

// Names of the two windows in RateLimit and RateLimit-Policy, and their lengths in seconds.
const (
	dayWindow     = `"day"`
	minuteWindow  = `"minute"`
	daySeconds    = 24 * 60 * 60 // Santo Domingo has no summer time
	minuteSeconds = int64(engine.MinuteSpan / time.Second)
)

// answerInTurn takes a data request through authentication, readiness and limits (L7) to its answer.
//
// The gate authenticates and charges in one step, so readiness is looked at behind it: a request that turns out to cost
// nothing (L6) gets its charge back.
func (s *Server) answerInTurn(ctx *fasthttp.RequestCtx, r *route) {
	enforced := s.gate.Enforced()
	if !enforced && !s.gate.Transition().Required(s.clock()) {
		s.answerData(ctx, r, s.instant())
		return
	}
	caller := s.caller(ctx)
	grant, err := s.gate.Admit(caller)
	if err != nil {
		s.refuseCaller(ctx, err)
		return
	}
	if !enforced {
		s.answerData(ctx, r, s.instant())
		return
	}
	now := s.instant()
	defer func() {
		if cause := recover(); cause != nil {
			s.refusePanic(ctx, string(s.idOf(ctx)), cause)
		}
		s.settle(ctx, &grant, now)
	}()
	if err := s.plantedFor(ctx); err != nil && s.refusePlanted(ctx, r, &grant, err) {
		return
	}
	if grant.Admitted {
		s.answerData(ctx, r, now)
	} else {
		s.refuseForNow(ctx, r, &grant.Verdict)
	}
}

// refuseCaller answers what the gate gave instead of a grant: 401 once keys are required, or 503.
func (s *Server) refuseCaller(ctx *fasthttp.RequestCtx, err error) {
	s.fail(ctx, err)
	if ctx.Response.StatusCode() == fasthttp.StatusUnauthorized {
		s.endNotice(&ctx.Response.Header)
	}
}

// refuseForNow answers 429, unless nothing is loaded: readiness comes before limits (L7).
func (s *Server) refuseForNow(ctx *fasthttp.RequestCtx, r *route, v *engine.Verdict) {
	if err := s.unready(r); err != nil {
		s.fail(ctx, err)
		return
	}
	message := "The limit of " + strconv.Itoa(v.Minute.Limit) + " requests in 60 seconds is reached; Retry-After says how many seconds to wait."
	if v.Violated == engine.CodeQuotaExceeded {
		message = "The limit of " + strconv.Itoa(v.Day.Limit) + " requests a day is reached; the day ends at midnight in Santo Domingo, and Retry-After says in how many seconds."
	}
	s.fail(ctx, &engine.Error{Code: v.Violated, Message: message, RetryAfter: v.RetryAfter})
}

// settle ends a request that was asked for in turn: 5xx costs nothing (L6), and every answer says where its caller stands (L9).
func (s *Server) settle(ctx *fasthttp.RequestCtx, grant *engine.Grant, now instant) {
	if grant.Admitted && ctx.Response.StatusCode() >= fasthttp.StatusInternalServerError {
		s.gate.Refund(*grant)
		grant.Day.Remaining = min(grant.Day.Limit, grant.Day.Remaining+1)
		grant.Minute.Remaining = min(grant.Minute.Limit, grant.Minute.Remaining+1)
	}
	s.writeLimits(&ctx.Response.Header, &grant.Verdict, now.at)
}

// writeLimits puts both windows on an answer: the tighter one as X-RateLimit (L3, L4), both as RateLimit-Policy and RateLimit of
// draft-ietf-httpapi-ratelimit-headers from its eighth edition on (lists of strings with the parameters q, w and r, t).
func (s *Server) writeLimits(header *fasthttp.ResponseHeader, v *engine.Verdict, now int64) {
	var room [96]byte
	names := &s.names
	tighter := v.Tighter()
	header.SetCanonical(names.limit, strconv.AppendInt(room[:0], int64(tighter.Limit), 10))
	header.SetCanonical(names.remaining, strconv.AppendInt(room[:0], int64(tighter.Remaining), 10))
	header.SetCanonical(names.reset, strconv.AppendInt(room[:0], epochSeconds(tighter.Reset), 10))
	policy := appendWindow(room[:0], dayWindow, "q", int64(v.Day.Limit), "w", daySeconds)
	policy = appendWindow(append(policy, ", "...), minuteWindow, "q", int64(v.Minute.Limit), "w", minuteSeconds)
	header.SetCanonical(names.policy, policy)
	state := appendWindow(room[:0], dayWindow, "r", int64(v.Day.Remaining), "t", secondsUntil(v.Day.Reset, now))
	state = appendWindow(append(state, ", "...), minuteWindow, "r", int64(v.Minute.Remaining), "t", secondsUntil(v.Minute.Reset, now))
	header.SetCanonical(names.state, state)
}

// appendWindow appends an item with two whole parameters: "day";q=1000;w=86400.
func appendWindow(dst []byte, window, first string, a int64, second string, b int64) []byte {
	dst = append(append(append(append(dst, window...), ';'), first...), '=')
	dst = append(append(append(strconv.AppendInt(dst, a, 10), ';'), second...), '=')
	return strconv.AppendInt(dst, b, 10)
}

// epochSeconds is an instant in whole seconds since 1970, rounded up (L4).
func epochSeconds(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

// secondsUntil is rounded up like Retry-After, so that the two agree; 0 for what is past.
func secondsUntil(t time.Time, now int64) int64 {
	const second = int64(time.Second)
	return max(0, (t.UnixNano()-now+second-1)/second)
}

package httpapi

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// Names of the two windows in RateLimit and RateLimit-Policy, and their lengths in seconds.
const (
	dayWindow     = `"day"`
	minuteWindow  = `"minute"`
	daySeconds    = 24 * 60 * 60 // Santo Domingo has no summer time
	minuteSeconds = int64(account.MinuteSpan / time.Second)
)

// admitAndAnswer takes a data request through authentication, readiness and limits to its answer.
//
// The admitter authenticates and charges in one step, so readiness is checked after it: a request that turns out to
// cost nothing is refunded.
func (s *Server) admitAndAnswer(ctx *fasthttp.RequestCtx, r *route, a *requestState) {
	if !a.asked {
		a.repanic()
		s.admit(a, s.caller(ctx, &a.HeadInfo))
	}
	if a.refusal != nil {
		s.refuseCaller(ctx, a.refusal)
		return
	}
	if !a.tellsLimits {
		s.answerData(ctx, r, a)
		return
	}
	defer s.finishAdmission(ctx, a)
	if err := s.plantedFor(ctx); err != nil && s.refusePlanted(ctx, r, &a.admission, err) {
		return
	}
	if a.admission.Admitted {
		s.answerData(ctx, r, a)
	} else {
		s.refuseOverLimit(ctx, r, &a.admission.QuotaResult)
	}
}

// admit asks the admitter, unless neither limits nor keys are enforced, and reads the clock.
func (s *Server) admit(a *requestState, caller account.Caller) {
	admitter := s.config.Admitter
	a.tellsLimits = admitter != nil && admitter.LimitsEnforced()
	if admitter == nil || !a.tellsLimits && !admitter.KeyPolicy().Required(s.config.Clock()) {
		a.now, a.asked = s.requestTime(), true
		return
	}
	a.admission, a.refusal = admitter.Admit(caller)
	if a.asked = true; a.refusal != nil {
		s.counters.countAdmission(a, caller.HasKey, codeOf(a.refusal))
		return
	}
	s.counters.countAdmission(a, a.admission.Account != 0, a.admission.DenyCode)
	if a.connState != nil {
		a.connState.keyed = a.admission.Account != 0 && a.admission.Admitted
	}
	if !a.tellsLimits || a.admission.At.Wall.IsZero() {
		a.now = s.requestTime()
	} else {
		a.now = s.requestTimeAt(a.admission.At.Wall) // one reading for the limits and the answer
	}
}

// refuseCaller answers the error of the admitter: 401 once keys are required, or 503.
func (s *Server) refuseCaller(ctx *fasthttp.RequestCtx, err error) {
	s.answerError(ctx, err)
	if ctx.Response.StatusCode() == fasthttp.StatusUnauthorized {
		s.removeDeprecation(&ctx.Response.Header)
	}
}

// refuseOverLimit answers 429, unless nothing is loaded: readiness comes before limits.
func (s *Server) refuseOverLimit(ctx *fasthttp.RequestCtx, r *route, v *account.QuotaResult) {
	if err := s.notReadyError(r); err != nil {
		s.answerError(ctx, err)
		return
	}
	message := "The limit of " + strconv.Itoa(v.Minute.Limit) + " requests in 60 seconds is reached; Retry-After says how many seconds to wait."
	if v.DenyCode == engine.CodeQuotaExceeded {
		message = "The limit of " + strconv.Itoa(v.Day.Limit) + " requests a day is reached; the day ends at midnight in Santo Domingo, and Retry-After says in how many seconds."
	}
	s.answerError(ctx, &engine.Error{Code: v.DenyCode, Message: message, RetryAfter: v.RetryAfter})
}

// finishAdmission ends an admitted request: a 5xx is refunded, and every answer tells the limits of its caller. It is
// deferred, because a panic is a 5xx too.
func (s *Server) finishAdmission(ctx *fasthttp.RequestCtx, a *requestState) {
	if cause := recover(); cause != nil {
		s.refusePanic(ctx, cause)
	} else if a.headWritten {
		return
	}
	grant := &a.admission
	if grant.Admitted && ctx.Response.StatusCode() >= fasthttp.StatusInternalServerError {
		s.config.Admitter.Refund(*grant)
		grant.Day.Remaining = min(grant.Day.Limit, grant.Day.Remaining+1)
		grant.Minute.Remaining = min(grant.Minute.Limit, grant.Minute.Remaining+1)
	}
	var room [headBufferBytes]byte
	setHeaderLines(&ctx.Response.Header, s.appendLimits(room[:0], &grant.QuotaResult, a.now.nanos))
}

// rateLimitPolicy is the value of RateLimit-Policy for callers of one quota, made once for each change of it.
type rateLimitPolicy struct {
	day, minute int
	line        []byte
}

// rateLimitPolicyLine is the line for a quota: nearly all callers have the same.
func (s *Server) rateLimitPolicyLine(day, minute int) []byte {
	p := s.rateLimitPolicy.Load()
	if p == nil || p.day != day || p.minute != minute {
		value := fields.AppendWindow(nil, dayWindow, "q", int64(day), "w", daySeconds)
		value = fields.AppendWindow(append(value, ", "...), minuteWindow, "q", int64(minute), "w", minuteSeconds)
		p = &rateLimitPolicy{day, minute, appendHeaderLine(nil, "RateLimit-Policy", value)}
		s.rateLimitPolicy.Store(p)
	}
	return p.line
}

// appendLimits appends both windows as lines of a head: the tighter one as X-RateLimit, both as
// RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers from its eighth edition on (lists of
// strings with the parameters q, w and r, t).
func (s *Server) appendLimits(dst []byte, v *account.QuotaResult, now int64) []byte {
	tighter := v.TighterWindow()
	dst = fields.AppendNumber(append(dst, "X-RateLimit-Limit: "...), int64(tighter.Limit))
	dst = fields.AppendNumber(append(dst, "\r\nX-RateLimit-Remaining: "...), int64(tighter.Remaining))
	dst = fields.AppendNumber(append(dst, "\r\nX-RateLimit-Reset: "...), fields.EpochSeconds(tighter.Reset))
	dst = append(append(dst, "\r\n"...), s.rateLimitPolicyLine(v.Day.Limit, v.Minute.Limit)...)
	dst = fields.AppendWindow(append(dst, "RateLimit: "...), dayWindow, "r", int64(v.Day.Remaining), "t", fields.SecondsUntil(v.Day.Reset, now))
	dst = fields.AppendWindow(append(dst, ", "...), minuteWindow, "r", int64(v.Minute.Remaining), "t", fields.SecondsUntil(v.Minute.Reset, now))
	return append(dst, "\r\n"...)
}

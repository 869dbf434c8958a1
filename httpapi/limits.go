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

// answerInTurn takes a data request through authentication, readiness and limits (L7) to its answer.
//
// The gate authenticates and charges in one step, so readiness is looked at behind it: a request that turns out to cost
// nothing (L6) gets its charge back.
func (s *Server) answerInTurn(ctx *fasthttp.RequestCtx, r *route, a *asked) {
	enforced := s.config.Gate.Enforced()
	if !enforced && !s.config.Gate.Transition().Required(s.config.Clock()) {
		a.now = s.instant()
		s.answerData(ctx, r, a)
		return
	}
	var err error
	caller := s.caller(ctx, &a.Framing)
	if a.grant, err = s.config.Gate.Admit(caller); err != nil {
		s.tally.countAdmission(a, caller.HasKey, codeOf(err))
		s.refuseCaller(ctx, err)
		return
	}
	s.tally.countAdmission(a, a.grant.Account != 0, a.grant.Violated)
	if a.on != nil {
		a.on.keyed = a.grant.Account != 0 && a.grant.Admitted
	}
	if !enforced || a.grant.At.Wall.IsZero() {
		a.now = s.instant()
	} else {
		a.now = s.instantAt(a.grant.At.Wall) // one moment for the limits and the answer, and one look at the clock
	}
	if !enforced {
		s.answerData(ctx, r, a)
		return
	}
	defer s.settle(ctx, a)
	a.limited = true
	if err := s.plantedFor(ctx); err != nil && s.refusePlanted(ctx, r, &a.grant, err) {
		return
	}
	if a.grant.Admitted {
		s.answerData(ctx, r, a)
	} else {
		s.refuseForNow(ctx, r, &a.grant.Verdict)
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
func (s *Server) refuseForNow(ctx *fasthttp.RequestCtx, r *route, v *account.Verdict) {
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

// settle ends a request that was asked for in turn: 5xx costs nothing (L6), and every answer says where its caller stands (L9). It is
// deferred: a panic is a 5xx too.
func (s *Server) settle(ctx *fasthttp.RequestCtx, a *asked) {
	if cause := recover(); cause != nil {
		s.refusePanic(ctx, cause)
	} else if a.headed {
		return
	}
	grant := &a.grant
	if grant.Admitted && ctx.Response.StatusCode() >= fasthttp.StatusInternalServerError {
		s.config.Gate.Refund(*grant)
		grant.Day.Remaining = min(grant.Day.Limit, grant.Day.Remaining+1)
		grant.Minute.Remaining = min(grant.Minute.Limit, grant.Minute.Remaining+1)
	}
	var room [headRoom]byte
	setLines(&ctx.Response.Header, s.appendLimits(room[:0], &grant.Verdict, a.now.at))
}

// policy is the value of RateLimit-Policy for callers of one allowance, made once for each change of it.
type policy struct {
	day, minute int
	line        []byte
}

// policyOf is the line for an allowance: nearly all callers have the same.
func (s *Server) policyOf(day, minute int) []byte {
	p := s.policy.Load()
	if p == nil || p.day != day || p.minute != minute {
		value := fields.AppendWindow(nil, dayWindow, "q", int64(day), "w", daySeconds)
		value = fields.AppendWindow(append(value, ", "...), minuteWindow, "q", int64(minute), "w", minuteSeconds)
		p = &policy{day, minute, appendLine(nil, "RateLimit-Policy", value)}
		s.policy.Store(p)
	}
	return p.line
}

// appendLimits appends both windows as lines of a head: the tighter one as X-RateLimit (L3, L4), both as RateLimit-Policy and RateLimit
// of draft-ietf-httpapi-ratelimit-headers from its eighth edition on (lists of strings with the parameters q, w and r, t).
func (s *Server) appendLimits(dst []byte, v *account.Verdict, now int64) []byte {
	tighter := v.Tighter()
	dst = fields.AppendNumber(append(dst, "X-RateLimit-Limit: "...), int64(tighter.Limit))
	dst = fields.AppendNumber(append(dst, "\r\nX-RateLimit-Remaining: "...), int64(tighter.Remaining))
	dst = fields.AppendNumber(append(dst, "\r\nX-RateLimit-Reset: "...), fields.EpochSeconds(tighter.Reset))
	dst = append(append(dst, "\r\n"...), s.policyOf(v.Day.Limit, v.Minute.Limit)...)
	dst = fields.AppendWindow(append(dst, "RateLimit: "...), dayWindow, "r", int64(v.Day.Remaining), "t", fields.SecondsUntil(v.Day.Reset, now))
	dst = fields.AppendWindow(append(dst, ", "...), minuteWindow, "r", int64(v.Minute.Remaining), "t", fields.SecondsUntil(v.Minute.Reset, now))
	return append(dst, "\r\n"...)
}

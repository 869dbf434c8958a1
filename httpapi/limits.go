package httpapi

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// admitAndAnswer authenticates a request for a data operation (all of /v1 except /v1/account), charges it (counts it
// against the quota), checks the limits and answers it. finishAdmission refunds the charge if the response is a 5xx.
func (s *Server) admitAndAnswer(ctx *fasthttp.RequestCtx, r *route, a *requestState) {
	if !a.admitDone {
		a.repanic()
		s.admit(a, s.caller(ctx, &a.HeadInfo))
	}
	s.countAdmission(a)
	if a.admitErr != nil {
		s.rejectCaller(ctx, a.admitErr)
		return
	}
	if !a.limitsEnforced {
		s.answerData(ctx, r, a)
		return
	}
	defer s.finishAdmission(ctx, a)
	if err := s.plantedError(ctx); err != nil && s.rejectPlanted(ctx, r, &a.admission, err) {
		return
	}
	if a.admission.Admitted {
		s.answerData(ctx, r, a)
	} else {
		s.rejectOverLimit(ctx, r, &a.admission.QuotaResult)
	}
}

// admit calls Config.Admitter if limits are enforced or API keys are required. It also sets a.now, except after an
// error of the admitter.
func (s *Server) admit(a *requestState, caller account.Caller) {
	a.address = caller.Address
	admitter := s.config.Admitter
	a.limitsEnforced = admitter != nil && admitter.LimitsEnforced()
	if admitter == nil || !a.limitsEnforced && !admitter.KeyPolicy().Required(s.config.Clock()) {
		a.now, a.admitDone = s.requestTime(), true
		a.isShared = admitter == nil || admitter.KeyPolicy().RequiredAt.IsZero()
		return
	}
	a.asked, a.hasKey = true, caller.HasKey
	a.admission, a.admitErr = admitter.Admit(caller)
	if a.admitDone = true; a.admitErr != nil {
		return
	}
	a.keyIgnored = (caller.HasKey || caller.HasMalformedKey) && a.admission.Account == 0
	if !a.limitsEnforced || a.admission.At.Wall.IsZero() {
		a.now = s.requestTime()
	} else {
		a.now = s.requestTimeAt(a.admission.At.Wall) // saves a clock reading
	}
}

// countAdmission counts the result of admit.
func (s *Server) countAdmission(a *requestState) {
	switch {
	case a.admitErr != nil:
		s.counters.countAdmission(a, a.hasKey, codeOf(a.admitErr))
	case a.asked:
		s.counters.countAdmission(a, a.admission.Account != 0, a.admission.DenyCode)
	}
}

// charged reports whether the request was for data and was admitted.
func (a *requestState) charged() bool {
	return a.admitDone && a.admitErr == nil && (!a.limitsEnforced || a.admission.Admitted)
}

// rejectCaller answers with an error of the admitter: 401 or 503.
func (s *Server) rejectCaller(ctx *fasthttp.RequestCtx, err error) {
	s.answerError(ctx, err)
	if ctx.Response.StatusCode() == fasthttp.StatusUnauthorized {
		s.removeDeprecation(&ctx.Response.Header)
	}
}

// rejectOverLimit answers 429, or 503 if the operation is not ready yet.
func (s *Server) rejectOverLimit(ctx *fasthttp.RequestCtx, r *route, q *account.QuotaResult) {
	if err := s.notReadyError(r); err != nil {
		s.answerError(ctx, err)
		return
	}
	message := "The limit of " + strconv.Itoa(q.Minute.Limit) + " requests in 60 seconds is reached; Retry-After says how many seconds to wait."
	if q.DenyCode == engine.CodeQuotaExceeded {
		message = "The limit of " + strconv.Itoa(q.Day.Limit) + " requests a day is reached; the day ends at midnight in Santo Domingo, and Retry-After says in how many seconds."
	}
	s.answerError(ctx, &engine.Error{Code: q.DenyCode, Message: message, RetryAfter: q.RetryAfter})
}

// finishAdmission refunds the charge if the response is a 5xx, and adds the rate-limit headers unless writeHead did. It
// must be deferred, because it also answers 500 after a panic.
func (s *Server) finishAdmission(ctx *fasthttp.RequestCtx, a *requestState) {
	if cause := recover(); cause != nil {
		s.rejectPanic(ctx, cause)
	} else if a.headWritten {
		return
	}
	admission := &a.admission
	if admission.Admitted && ctx.Response.StatusCode() >= fasthttp.StatusInternalServerError {
		s.config.Admitter.Refund(*admission)
		admission.Day.Remaining = min(admission.Day.Limit, admission.Day.Remaining+1)
		admission.Minute.Remaining = min(admission.Minute.Limit, admission.Minute.Remaining+1)
	}
	var room [headBufferBytes]byte
	setHeaderLines(&ctx.Response.Header, s.appendLimits(room[:0], a))
}

// appendLimits appends the rate-limit header lines. They describe the tighter of the two quota windows, day and
// minute. A request with an unusable key also gets X-Key-Status.
func (s *Server) appendLimits(dst []byte, a *requestState) []byte {
	if a.keyIgnored {
		dst = append(dst, keyIgnoredLine...)
	}
	tighter := a.admission.TighterWindow()
	dst = fields.AppendNumber(append(dst, "X-RateLimit-Limit: "...), int64(tighter.Limit))
	dst = fields.AppendNumber(append(dst, "\r\nX-RateLimit-Remaining: "...), int64(tighter.Remaining))
	dst = fields.AppendNumber(append(dst, "\r\nX-RateLimit-Reset: "...), fields.EpochSeconds(tighter.Reset))
	return append(dst, "\r\n"...)
}

package account

import (
	"errors"
	"net/http"
	"strings"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/pages"
)

// formError is why a form was refused: the key of its text below "fault.", and how long to wait.
type formError struct {
	Key     string
	Status  int
	Wait    time.Duration // 0 = unknown
	Minutes bool          // Wait is shown in minutes instead of seconds
}

// Errors of the forms themselves.
func staleForm() *formError { return &formError{Key: "stale", Status: http.StatusForbidden} }
func usedForm() *formError  { return &formError{Key: "used", Status: http.StatusConflict} }
func busy() *formError {
	return &formError{Key: "overloaded", Status: http.StatusServiceUnavailable, Wait: time.Minute, Minutes: true}
}

// secondsMax is the longest wait that is shown in seconds.
const secondsMax = 120 * time.Second

// formErrorOf converts an engine.Error. It returns nil for other errors, whose text is not shown.
func formErrorOf(err error) *formError {
	var named *engine.Error
	if !errors.As(err, &named) {
		return nil
	}
	statuses := map[engine.Code]int{
		engine.CodeInvalidCode:       http.StatusUnprocessableEntity,
		engine.CodeInvalidParameters: http.StatusUnprocessableEntity,
		engine.CodeInvalidSession:    http.StatusForbidden,
		engine.CodeAccountSuspended:  http.StatusForbidden,
		engine.CodeNotFound:          http.StatusNotFound,
		engine.CodeKeyLimitReached:   http.StatusConflict,
		engine.CodeRequestedTooSoon:  http.StatusTooManyRequests,
		engine.CodeRateLimited:       http.StatusTooManyRequests,
		engine.CodeDataUnavailable:   http.StatusServiceUnavailable,
		engine.CodeOverloaded:        http.StatusServiceUnavailable,
		engine.CodeReadOnly:          http.StatusServiceUnavailable,
	}
	status, known := statuses[named.Code]
	if !known {
		return nil
	}
	f := &formError{Key: string(named.Code), Status: status}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		f.Wait = max(named.RetryAfter, time.Second)
		f.Minutes = f.Wait > secondsMax
	}
	return f
}

// Count returns the wait in its unit, rounded up.
func (f *formError) Count() int {
	unit := time.Second
	if f.Minutes {
		unit = time.Minute
	}
	return int((f.Wait + unit - 1) / unit)
}

// statusOf returns the status for an error: 422 if one of the keys of field errors is not empty, 200 without an error.
// It sets Retry-After.
func (v *pageContext) statusOf(f *formError, typed ...string) int {
	switch {
	case strings.Join(typed, "") != "":
		return http.StatusUnprocessableEntity
	case f == nil:
		return http.StatusOK
	case f.Wait > 0:
		v.w.Header().Set("Retry-After", pages.RetryAfter(f.Wait))
	}
	return f.Status
}

// notice shows an error.
func (v *pageContext) notice(f *formError) Node {
	if f == nil {
		return nil
	}
	unit := "wait.seconds"
	if f.Minutes {
		unit = "wait.minutes"
	}
	return Div(Class("notice bad"), Role("alert"),
		P(v.l.T("fault."+f.Key), If(f.Wait > 0, Text(" "+v.l.Count(unit, f.Count())))))
}

// note shows a success.
func (v *pageContext) note(key string) Node {
	return If(key != "", Div(Class("notice good"), Role("status"), P(v.l.T(key))))
}

// form is a form with a token for its purpose.
func (v *pageContext) form(to, purpose, class string, children ...Node) Node {
	return Form(If(class != "", Class(class)), Method("post"), v.l.Action(rootPage+to),
		Input(Type("hidden"), Name(formField), Value(v.token(purpose))), Group(children))
}

func field(children ...Node) Node { return Div(Class("field"), Group(children)) }

func submit(class string, children ...Node) Node {
	return Button(Class(class), Type("submit"), Group(children))
}

// describedBy links a field to its help and its error.
func describedBy(name, help, fault string) Node {
	if fault == "" {
		return If(help != "", Aria("describedby", help))
	}
	return Group{Aria("describedby", strings.TrimSpace(help+" "+name+"-fault")), Aria("invalid", "true")}
}

// fieldError shows the error of a field.
func (v *pageContext) fieldError(name, fault string, role Node) Node {
	return If(fault != "", P(Class("problem"), ID(name+"-fault"), role, v.l.T(fault)))
}

// codeOf returns the code of an error, "" if it has none.
func codeOf(err error) engine.Code {
	var named *engine.Error
	if errors.As(err, &named) {
		return named.Code
	}
	return ""
}

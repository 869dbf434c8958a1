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

// formError is the error of a form.
type formError struct {
	Key     string // the key of its text is "fault." + Key
	Status  int
	Wait    time.Duration // how long to wait before the next attempt; 0 = not shown
	Minutes bool          // Wait is shown in minutes instead of seconds
}

// Errors of form tokens.
func staleForm() *formError { return &formError{Key: "stale", Status: http.StatusForbidden} }
func usedForm() *formError  { return &formError{Key: "used", Status: http.StatusConflict} }
func busy() *formError {
	return &formError{Key: "overloaded", Status: http.StatusServiceUnavailable, Wait: time.Minute, Minutes: true}
}

// secondsMax is the longest wait that is shown in seconds.
const secondsMax = 120 * time.Second

// formErrorOf converts an engine.Error. It returns nil for other errors and codes.
func formErrorOf(err error) *formError {
	var apiErr *engine.Error
	if !errors.As(err, &apiErr) {
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
	status, ok := statuses[apiErr.Code]
	if !ok {
		return nil
	}
	f := &formError{Key: string(apiErr.Code), Status: status}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		f.Wait = max(apiErr.RetryAfter, time.Second)
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

// statusOf returns the status of a page with the error f and the keys of field errors: 422 if one of the keys is not
// empty, else the status of f, or 200 if f is nil. It also sets Retry-After.
func (v *pageContext) statusOf(f *formError, fieldErrors ...string) int {
	switch {
	case strings.Join(fieldErrors, "") != "":
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

// note shows a message of success.
func (v *pageContext) note(key string) Node {
	return If(key != "", Div(Class("notice good"), Role("status"), P(v.l.T(key))))
}

// form returns a form with a token for its purpose.
func (v *pageContext) form(path, purpose, class string, children ...Node) Node {
	return Form(If(class != "", Class(class)), Method("post"), v.l.Action(rootPage+path),
		Input(Type("hidden"), Name(formField), Value(v.token(purpose))), Group(children))
}

func field(children ...Node) Node { return Div(Class("field"), Group(children)) }

func submit(class string, children ...Node) Node {
	return Button(Class(class), Type("submit"), Group(children))
}

// describedBy returns the attributes that link a field to its help and its error.
func describedBy(name, help, errKey string) Node {
	if errKey == "" {
		return If(help != "", Aria("describedby", help))
	}
	return Group{Aria("describedby", strings.TrimSpace(help+" "+name+"-fault")), Aria("invalid", "true")}
}

// fieldError shows the error of a field.
func (v *pageContext) fieldError(name, errKey string, role Node) Node {
	return If(errKey != "", P(Class("problem"), ID(name+"-fault"), role, v.l.T(errKey)))
}

// codeOf returns the code of an error, "" if it has none.
func codeOf(err error) engine.Code {
	var apiErr *engine.Error
	if errors.As(err, &apiErr) {
		return apiErr.Code
	}
	return ""
}

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

// formError is an error that concerns a form as a whole, not one of its input fields.
type formError struct {
	Key     string // the text of the error has the key "fault." + Key
	Status  int
	Wait    time.Duration // how long the user should wait before the next attempt; 0 is not shown
	Minutes bool          // Wait is shown in minutes instead of seconds
}

// noCookie is the error of a form that came without a cookie of these pages.
func noCookie() *formError { return &formError{Key: "stale", Status: http.StatusForbidden} }

// secondsMax is the longest wait that is shown in seconds.
const secondsMax = 120 * time.Second

// formErrorOf converts an engine.Error to a formError. It returns nil for other errors, and for codes that users can't
// do anything about.
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
		engine.CodeMailUnavailable:   http.StatusServiceUnavailable,
		engine.CodeOverloaded:        http.StatusServiceUnavailable,
		engine.CodeReadOnly:          http.StatusServiceUnavailable,
		engine.CodeNoMajority:        http.StatusServiceUnavailable,
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

// Count returns Wait in the unit in which it is shown, rounded up.
func (f *formError) Count() int {
	unit := time.Second
	if f.Minutes {
		unit = time.Minute
	}
	return int((f.Wait + unit - 1) / unit)
}

// statusOf returns the HTTP status of a page. If one of fieldErrors is not "", the status is 422. Otherwise it is the
// status of f, or 200 if f is nil. statusOf also sets Retry-After if f.Wait is not 0.
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

// notice returns the error as a box, or nil if f is nil.
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

// note returns a success message, or nil if key is "".
func (v *pageContext) note(key string) Node {
	return If(key != "", Div(Class("notice good"), Role("status"), P(v.l.T(key))))
}

// form returns a form. path is relative to rootPage.
func (v *pageContext) form(path, class string, children ...Node) Node {
	return Form(If(class != "", Class(class)), Method("post"), v.l.Action(rootPage+path), Group(children))
}

func field(children ...Node) Node { return Div(Class("field"), Group(children)) }

func submit(class string, children ...Node) Node {
	return Button(Class(class), Type("submit"), Group(children))
}

// describedBy returns the attributes that link a field to its help text and its error message.
func describedBy(name, help, errKey string) Node {
	if errKey == "" {
		return If(help != "", Aria("describedby", help))
	}
	return Group{Aria("describedby", strings.TrimSpace(help+" "+name+"-fault")), Aria("invalid", "true")}
}

// fieldError returns the error message of a field, or nil if errKey is "".
func (v *pageContext) fieldError(name, errKey string, role Node) Node {
	return If(errKey != "", P(Class("problem"), ID(name+"-fault"), role, v.l.T(errKey)))
}

// codeOf returns the code of an engine.Error, or "" for another error.
func codeOf(err error) engine.Code {
	var apiErr *engine.Error
	if errors.As(err, &apiErr) {
		return apiErr.Code
	}
	return ""
}

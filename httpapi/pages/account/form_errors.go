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

// err is why a form was not carried out, as its page says it: the text fault.<Key>, and how long to wait.
type formError struct {
	Key     string
	Status  int
	Wait    time.Duration // 0 = no moment is known
	Minutes bool          // Wait is told in minutes, not seconds
}

// The faults that no rule of the accounts names.
func staleForm() *formError { return &formError{Key: "stale", Status: http.StatusForbidden} }
func usedForm() *formError  { return &formError{Key: "used", Status: http.StatusConflict} }
func busy() *formError {
	return &formError{Key: "overloaded", Status: http.StatusServiceUnavailable, Wait: time.Minute, Minutes: true}
}

// secondsMax is the longest waiting time that is told in seconds.
const secondsMax = 120 * time.Second

// formErrorOf is an error of the rules as a page says it, nil for one that is no rule's: a visitor is told nothing of that.
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

// Count is the waiting time in its unit, rounded up.
func (f *formError) Count() int {
	unit := time.Second
	if f.Minutes {
		unit = time.Minute
	}
	return int((f.Wait + unit - 1) / unit)
}

// statusOf puts the waiting time into the answer's head and gives its status: 422 for what was typed wrong, by the keys of its faults; 200
// without a fault.
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

// notice shows a fault.
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

// note shows what the page before has done.
func (v *pageContext) note(key string) Node {
	return If(key != "", Div(Class("notice good"), Role("status"), P(v.l.T(key))))
}

// form is sent to a page below the account's, with a token for its purpose.
func (v *pageContext) form(to, purpose, class string, children ...Node) Node {
	return Form(If(class != "", Class(class)), Method("post"), v.l.Action(rootPage+to),
		Input(Type("hidden"), Name(formField), Value(v.token(purpose))), Group(children))
}

func field(children ...Node) Node { return Div(Class("field"), Group(children)) }

func submit(class string, children ...Node) Node {
	return Button(Class(class), Type("submit"), Group(children))
}

// describedBy ties a field to its help and to what was wrong with it.
func describedBy(name, help, fault string) Node {
	if fault == "" {
		return If(help != "", Aria("describedby", help))
	}
	return Group{Aria("describedby", strings.TrimSpace(help+" "+name+"-fault")), Aria("invalid", "true")}
}

// fieldError says what was wrong with a field.
func (v *pageContext) fieldError(name, fault string, role Node) Node {
	return If(fault != "", P(Class("problem"), ID(name+"-fault"), role, v.l.T(fault)))
}

// hasCode tells the code of an error of the rules.
func hasCode(err error, code engine.Code) bool {
	var named *engine.Error
	return errors.As(err, &named) && named.Code == code
}

// codeOf is the code of an error of the rules, "" for another.
func codeOf(err error) engine.Code {
	var named *engine.Error
	if errors.As(err, &named) {
		return named.Code
	}
	return ""
}

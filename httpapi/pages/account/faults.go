package account

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/tasard/tasard/engine"
)

// fault is why a form was not carried out, as its page says it: the text fault.<Key>, and how long to wait.
type fault struct {
	Key     string
	Status  int
	Wait    time.Duration // 0 = no moment is known
	Minutes bool          // Wait is told in minutes, not seconds
}

// The faults that no rule of the accounts names.
func staleForm() *fault { return &fault{Key: "stale", Status: http.StatusForbidden} }
func usedForm() *fault  { return &fault{Key: "used", Status: http.StatusConflict} }
func busy() *fault {
	return &fault{Key: "overloaded", Status: http.StatusServiceUnavailable, Wait: time.Minute, Minutes: true}
}

// secondsMax is the longest waiting time that is told in seconds.
const secondsMax = 120 * time.Second

// faultOf is an error of the rules as a page says it, nil for one that is no rule's: a visitor is told nothing of that.
func faultOf(err error) *fault {
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
	f := &fault{Key: string(named.Code), Status: status}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		f.Wait = max(named.RetryAfter, time.Second)
		f.Minutes = f.Wait > secondsMax
	}
	return f
}

// Count is the waiting time in its unit, rounded up.
func (f *fault) Count() int {
	unit := time.Second
	if f.Minutes {
		unit = time.Minute
	}
	return int((f.Wait + unit - 1) / unit)
}

// refused puts the waiting time into the answer's head and gives its status; without a fault that is 200.
func (v *visit) refused(f *fault) int {
	if f == nil {
		return http.StatusOK
	}
	if f.Wait > 0 {
		v.w.Header().Set("Retry-After", strconv.FormatInt(int64((f.Wait+time.Second-1)/time.Second), 10))
	}
	return f.Status
}

// is tells the code of an error of the rules.
func is(err error, code engine.Code) bool {
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

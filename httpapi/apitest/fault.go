package apitest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
)

// Fault spoils requests. The first fault of a node that matches a request is the one that it meets.
type Fault struct {
	// Route is a path of the API, such as "/v1/rates/best", "/v1/institutions/{id}" or "POST /v1/account/codes". In place of
	// {id} stands any one segment. "" is every path.
	Route string
	// Status is what is answered instead: 429, 500 or 503, with the body and the headers of a real one. 0 = the operation's.
	Status int
	// Code is error.code of the answer. "" = rate_limited, internal_error or data_unavailable. It must be one of the status.
	Code engine.Code
	// RetryAfter goes with 429 and 503. 0 = 1 s.
	RetryAfter time.Duration
	// Delay is how long the request waits first, in real time.
	Delay time.Duration
	// Drop ends the connection in place of the answer. The request is carried out.
	Drop bool
	// Truncate ends the connection after so many bytes of the body, of which the headers announce more. 0 = the whole.
	Truncate int

	// Times is how many requests it spoils. 0 = all, until ClearFaults.
	Times int
	// PerMillion is the share of the requests that it spoils, in millionths, drawn by Seed. 0 = each.
	PerMillion int
	Seed       uint64
}

// million is the whole of PerMillion.
const million = 1_000_000

// check tells what is wrong with a fault.
func (f *Fault) check() error {
	switch {
	case f.Status == 0 && f.Code != "":
		return fmt.Errorf("fault of %q: the code %s without a status", f.Route, f.Code)
	case f.Status != 0 && f.error() == nil:
		return fmt.Errorf("fault of %q: status %d with the code %q; want 429, 500 or 503, and a code of that status or none", f.Route, f.Status, f.Code)
	case f.Status == 0 && f.Delay == 0 && !f.Drop && f.Truncate == 0:
		return fmt.Errorf("fault of %q: it says nothing to do; set Status, Delay, Drop or Truncate", f.Route)
	case f.Times < 0 || f.Truncate < 0 || f.Delay < 0 || f.RetryAfter < 0:
		return fmt.Errorf("fault of %q: a negative number", f.Route)
	case f.PerMillion < 0 || f.PerMillion > million:
		return fmt.Errorf("fault of %q: %d millionths, want 0 to %d", f.Route, f.PerMillion, million)
	}
	return nil
}

// faultErrors are the answers of a fault: by status, the usual one first.
func faultErrors() map[int][]engine.Error {
	return map[int][]engine.Error{
		http.StatusTooManyRequests: {
			{Code: engine.CodeRateLimited, Message: "too many requests in a minute"},
			{Code: engine.CodeQuotaExceeded, Message: "too many requests today"},
			{Code: engine.CodeRequestedTooSoon, Message: "a code was sent less than a minute ago"},
		},
		http.StatusInternalServerError: {{Code: engine.CodeInternalError}},
		http.StatusServiceUnavailable: {
			{Code: engine.CodeDataUnavailable, Message: "the data is not available at the moment"},
			{Code: engine.CodeOverloaded, Message: "too many requests at the moment"},
			{Code: engine.CodeReadOnly, Message: "the data cannot be changed at the moment"},
		},
	}
}

// error is the answer, nil when there is none.
func (f *Fault) error() *engine.Error {
	answers := faultErrors()[f.Status]
	at := 0
	if f.Code != "" {
		at = slices.IndexFunc(answers, func(e engine.Error) bool { return e.Code == f.Code })
	}
	if len(answers) == 0 || at < 0 {
		return nil
	}
	answer := answers[at]
	answer.RetryAfter = f.RetryAfter
	return &answer
}

// matches reports that the route is the request's.
func (f *Fault) matches(method, path string) bool {
	route := f.Route
	if of, rest, found := strings.Cut(route, " "); found {
		if of != method {
			return false
		}
		route = rest
	}
	if route == "" {
		return true
	}
	want, have := strings.Split(route, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(want, have string) bool {
		return want == have || strings.HasPrefix(want, "{") && strings.HasSuffix(want, "}") && have != ""
	})
}

// failures is the list of a node.
type faults struct {
	mu   sync.Mutex
	list []*activeFault
}

// activeFault is a fault with what it has left.
type activeFault struct {
	Fault
	remaining int
	random    *rand.Rand
}

func (f *faults) add(fault Fault) error {
	if err := fault.check(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, &activeFault{fault, fault.Times, rand.New(rand.NewPCG(fault.Seed, million))})
	return nil
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
}

// take is the fault that a request meets. One whose share passes the request over leaves it to the next.
func (f *faults) take(method, path string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, a := range f.list {
		if !a.matches(method, path) || a.PerMillion > 0 && a.random.IntN(million) >= a.PerMillion {
			continue
		}
		if a.Times > 0 {
			if a.remaining--; a.remaining == 0 {
				f.list = slices.Delete(f.list, i, i+1)
			}
		}
		return a.Fault, true
	}
	return Fault{}, false
}

// String is the fault as ParseFault reads it: status, share and route.
func (f *Fault) String() string {
	text := strconv.Itoa(f.Status)
	if f.PerMillion > 0 {
		share := fmt.Sprintf("%d.%06d", f.PerMillion/million, f.PerMillion%million)
		text += ":" + strings.TrimRight(strings.TrimRight(share, "0"), ".")
	}
	if f.Route != "" {
		text += "@" + f.Route
	}
	return text
}

package apitest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi"
)

// Fault makes requests fail. If several faults match a request, only the first one affects it.
type Fault struct {
	// Route is a path, such as "/v1/rates/best", or a method and a path, such as "POST /v1/account/codes". A segment in
	// braces, as in "/v1/institutions/{id}", matches any segment. "" matches every request. A route that the node does not
	// have is an error.
	Route string
	// Status is the status of an error response that replaces the real response: 429, 500 or 503. 0 = the real response.
	Status int
	// Code is the value of error.code in the JSON body of the error response. It must belong to Status. "" = rate_limited,
	// internal_error or data_unavailable.
	Code engine.Code
	// RetryAfter is the header Retry-After of a response with status 429 or 503. 0 = 1 s.
	RetryAfter time.Duration
	// Delay is how long the request waits before it is executed, in real time.
	Delay time.Duration
	// Drop closes the connection without a response. The request is executed.
	Drop bool
	// Truncate is the number of bytes of the response body after which the connection is closed. 0 = never.
	Truncate int

	// Times is how many requests the fault affects. 0 = all, until ClearFaults.
	Times int
	// PerMillion is the share of requests that the fault affects, in millionths, chosen at random. 0 = all requests.
	PerMillion int
	// Seed is the seed of the random generator that chooses the requests of PerMillion.
	Seed uint64
}

const million = 1_000_000

func (f *Fault) check() error {
	problem := ""
	switch {
	case f.Status == 0 && f.Code != "":
		problem = fmt.Sprintf("the code %s has no status", f.Code)
	case f.Status != 0 && f.error() == nil && f.Code != "":
		problem = fmt.Sprintf("status %d with the code %s; want 429, 500 or 503, and a code of that status", f.Status, f.Code)
	case f.Status != 0 && f.error() == nil:
		problem = fmt.Sprintf("status %d; want 429, 500 or 503", f.Status)
	case f.Status == 0 && f.Delay == 0 && !f.Drop && f.Truncate == 0:
		problem = "it does nothing; set Status, Delay, Drop or Truncate"
	case f.Times < 0 || f.Truncate < 0 || f.Delay < 0 || f.RetryAfter < 0:
		problem = "a number is negative"
	case f.PerMillion < 0 || f.PerMillion > million:
		problem = fmt.Sprintf("%d millionths; want 0 to %d", f.PerMillion, million)
	default:
		return nil
	}
	return fmt.Errorf("fault of %s: %s", cmp.Or(f.Route, "all routes"), problem)
}

// faultErrors returns the possible errors of each status. The first one is the default.
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
			{Code: engine.CodeMailUnavailable, Message: "this node sends no e-mail, so logins are not possible"},
			{Code: engine.CodeOverloaded, Message: "too many requests at the moment"},
			{Code: engine.CodeReadOnly, Message: "the disk of the node is nearly full, so changes and new quota leases must wait; try again later"},
			{Code: engine.CodeNoMajority, Message: "no majority of the cluster's members is reachable, so changes and new quota leases must wait; try again later"},
		},
	}
}

// checkRoute returns an error if the node has no route like Fault.Route. Otherwise the fault would never make a request
// fail, and a test would pass without it.
func (n *Node) checkRoute(route string) error {
	method, path, hasMethod := strings.Cut(route, " ")
	if !hasMethod {
		method, path = "", route
	}
	nearest, distance := "", len(path)
	for _, known := range httpapi.Routes() {
		knownMethod, knownPath, _ := strings.Cut(known, " ")
		sameMethod := method == "" || method == knownMethod || method == http.MethodOptions || method == http.MethodHead && knownMethod == http.MethodGet
		if sameMethod && (matchesPath(path, knownPath) || matchesPath(knownPath, path)) {
			return nil
		}
		if d := engine.EditDistance(path, knownPath); d < distance {
			nearest, distance = known, d
		}
	}
	if route == "" || n.instance.server.HasPage(path, "") {
		return nil
	}
	if nearest != "" {
		nearest = "; the nearest is " + nearest
	}
	return fmt.Errorf("fault of %q: the node has no such route%s. A route is \"\", a path without query, or a method and a path. Operations: %s",
		route, nearest, strings.Join(httpapi.Routes(), ", "))
}

// error returns the error with which the fault answers a request, or nil if Status or Code is unknown.
func (f *Fault) error() *engine.Error {
	choices := faultErrors()[f.Status]
	index := 0
	if f.Code != "" {
		index = slices.IndexFunc(choices, func(e engine.Error) bool { return e.Code == f.Code })
	}
	if len(choices) == 0 || index < 0 {
		return nil
	}
	result := choices[index]
	result.RetryAfter = f.RetryAfter
	return &result
}

// matches reports whether the route matches a request.
func (f *Fault) matches(method, path string) bool {
	route := f.Route
	if wantMethod, wantPath, hasMethod := strings.Cut(route, " "); hasMethod {
		if wantMethod != method {
			return false
		}
		route = wantPath
	}
	return route == "" || matchesPath(route, path)
}

// matchesPath reports whether a path matches a pattern, in which a segment in braces matches any segment.
func matchesPath(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(want, have string) bool {
		return want == have || strings.HasPrefix(want, "{") && strings.HasSuffix(want, "}") && have != ""
	})
}

type faults struct {
	mu   sync.Mutex
	list []*activeFault
	// unused are faults that were cleared before any request was affected.
	unused []Fault
}

type activeFault struct {
	Fault
	remaining int        // number of requests that the fault still affects, if Times is not 0
	used      bool       // a request was affected
	random    *rand.Rand // chooses at random which requests the fault affects, if PerMillion is not 0
}

func (f *faults) add(fault Fault) error {
	if err := fault.check(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, &activeFault{Fault: fault, remaining: fault.Times, random: rand.New(rand.NewPCG(fault.Seed, million))})
	return nil
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.list {
		if !a.used {
			f.unused = append(f.unused, a.Fault)
		}
	}
	f.list = nil
}

// neverUsed clears the faults and returns all that affected no request.
func (f *faults) neverUsed() []Fault {
	f.clear()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unused
}

// take returns the first fault that affects a request, and counts the request.
func (f *faults) take(method, path string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, a := range f.list {
		if !a.matches(method, path) || a.PerMillion > 0 && a.random.IntN(million) >= a.PerMillion {
			continue
		}
		a.used = true
		if a.Times > 0 {
			if a.remaining--; a.remaining == 0 {
				f.list = slices.Delete(f.list, i, i+1)
			}
		}
		return a.Fault, true
	}
	return Fault{}, false
}

// String returns the fault in the form that ParseFault reads.
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

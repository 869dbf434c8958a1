package apitest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi"
	"github.com/tasard/tasard/httpapi/internal/encode"
)

// Fault makes requests fail. If several faults match a request, only the first one affects it.
type Fault struct {
	// Route is a path, such as "/v1/rates/best", or a method and a path, such as "POST /v1/account/codes". A segment in
	// braces, as in "/v1/institutions/{id}", matches any segment. "" matches every request. An unknown route is an
	// error.
	Route string
	// Status is the status of an error response: 429, 500 or 503. 0 = the real response.
	Status int
	// Code is the error code in the JSON body of the error response. It must belong to Status. "" = rate_limited,
	// internal_error or data_unavailable.
	Code engine.Code
	// RetryAfter is the header Retry-After of a response with status 429 or 503. 0 = 1 s.
	RetryAfter time.Duration
	// Delay is the wait before the node handles the request, in real time.
	Delay time.Duration
	// Drop closes the connection without a response. The node still handles the request.
	Drop bool
	// Times is the number of affected requests. 0 = all, until ClearFaults.
	Times int
}

func (f *Fault) check() error {
	problem := ""
	switch {
	case f.Status == 0 && f.Code != "":
		problem = fmt.Sprintf("the code %s has no status", f.Code)
	case f.Status != 0 && f.error() == nil && f.Code != "":
		problem = fmt.Sprintf("status %d with the code %s; want 429, 500 or 503, and a code of that status", f.Status, f.Code)
	case f.Status != 0 && f.error() == nil:
		problem = fmt.Sprintf("status %d; want 429, 500 or 503", f.Status)
	case f.Status == 0 && f.Delay == 0 && !f.Drop:
		problem = "it does nothing; set Status, Delay or Drop"
	case f.Times < 0 || f.Delay < 0 || f.RetryAfter < 0:
		problem = "a number is negative"
	default:
		return nil
	}
	return fmt.Errorf("fault of %s: %s", cmp.Or(f.Route, "all routes"), problem)
}

// checkRoute returns an error if the node has no route like Fault.Route. Otherwise the fault would have no effect, and
// a test would pass without it.
func (n *Node) checkRoute(route string) error {
	method, path, hasMethod := strings.Cut(route, " ")
	if !hasMethod {
		method, path = "", route
	}
	for _, known := range httpapi.Routes() {
		knownMethod, knownPath, _ := strings.Cut(known, " ")
		sameMethod := method == "" || method == knownMethod || method == http.MethodOptions || method == http.MethodHead && knownMethod == http.MethodGet
		if sameMethod && (matchesPath(path, knownPath) || matchesPath(knownPath, path)) {
			return nil
		}
	}
	if route == "" || n.instance.server.HasPage(path, "") {
		return nil
	}
	return fmt.Errorf("fault of %q: the node has no such route. A route is \"\", a path without query, or a method and a path. Operations: %s",
		route, strings.Join(httpapi.Routes(), ", "))
}

// error returns the fault's error response, or nil for a Status that has none or a Code of another status.
func (f *Fault) error() *engine.Error {
	usual := map[int]engine.Code{
		http.StatusTooManyRequests: engine.CodeRateLimited, http.StatusInternalServerError: engine.CodeInternalError, http.StatusServiceUnavailable: engine.CodeDataUnavailable,
	}
	code := cmp.Or(f.Code, usual[f.Status])
	if status, known := encode.Status(code); !known || status != f.Status || usual[status] == "" {
		return nil
	}
	return &engine.Error{Code: code, Message: "A test makes this request fail.", RetryAfter: f.RetryAfter}
}

// matches reports whether the fault affects a request.
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

// matchesPath reports whether a path matches a pattern. A segment in braces matches any segment.
func matchesPath(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(want, have string) bool {
		return want == have || strings.HasPrefix(want, "{") && strings.HasSuffix(want, "}") && have != ""
	})
}

type faults struct {
	mu      sync.Mutex
	list    []*Fault      // Times is the number of remaining requests, 0 = all
	cleared chan struct{} // closed by clear, which makes a new one
}

func (f *faults) add(fault Fault) error {
	if err := fault.check(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, &fault)
	return nil
}

// clear removes all faults. It also ends the delay of requests in progress.
func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
	if f.cleared != nil {
		close(f.cleared)
		f.cleared = nil
	}
}

// take returns the first fault for a request, and counts the request. cleared is closed by the next call of clear.
func (f *faults) take(method, path string) (fault *Fault, cleared chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, active := range f.list {
		if !active.matches(method, path) {
			continue
		}
		if active.Times > 0 {
			if active.Times--; active.Times == 0 {
				f.list = slices.Delete(f.list, i, i+1)
			}
		}
		if f.cleared == nil {
			f.cleared = make(chan struct{})
		}
		return active, f.cleared
	}
	return nil, nil
}

// middleware makes a request fail if a Fault affects it.
func (n *Node) middleware(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		fault, cleared := n.faults.take(string(ctx.Method()), string(ctx.URI().PathOriginal()))
		if fault == nil {
			next(ctx)
			return
		}
		if fault.Delay > 0 {
			timer := time.NewTimer(fault.Delay)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-cleared:
			case <-n.acceptor.pausing():
			}
		}
		err := fault.error()
		if err != nil {
			httpapi.Plant(ctx, err)
		}
		next(ctx)
		if fault.Status == http.StatusTooManyRequests && n.config.limits {
			n.showUsedUp(&ctx.Response.Header, err)
		}
		if fault.Drop {
			_ = ctx.Conn().Close() // before the response is written
		}
	}
}

// showUsedUp sets the rate-limit headers of a planted 429, as if a quota were used up.
func (n *Node) showUsedUp(header *fasthttp.ResponseHeader, err *engine.Error) {
	limit := cmp.Or(n.config.quota.Minute, account.MinuteLimitDefault)
	if err.Code == engine.CodeQuotaExceeded {
		limit = cmp.Or(n.config.quota.Day, account.DayLimitDefault)
	}
	reset := n.Clock.Now().Add(max(err.RetryAfter, time.Second) + time.Second - 1)
	header.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	header.Set("X-RateLimit-Remaining", "0")
	header.Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
}

// ParseFault parses a fault in one of the forms STATUS and STATUS@ROUTE, such as 503@/v1/rates/best.
func ParseFault(text string) (Fault, error) {
	status, route, _ := strings.Cut(text, "@")
	code, err := strconv.Atoi(status)
	if err != nil {
		return Fault{}, fmt.Errorf("%q: want STATUS or STATUS@ROUTE, such as 503@/v1/rates/best", text)
	}
	fault := Fault{Route: route, Status: code}
	return fault, fault.check()
}

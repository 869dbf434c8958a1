package conformance

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// limitWindows parses the headers RateLimit and RateLimit-Policy. It returns the quota windows (periods for which
// requests are counted) by name, or false if the response has no header RateLimit.
func (k *ruleRun) limitWindows(res *response) (windows map[string]window, ok bool) {
	state := res.header.Get("RateLimit")
	if state == "" {
		return nil, false
	}
	windows = map[string]window{}
	for part := range strings.SplitSeq(state, ", ") {
		var w window
		name, params, _ := strings.Cut(part, ";")
		if _, err := fmt.Sscanf(params, "r=%d;t=%d", &w.remaining, &w.reset); err != nil {
			k.fatalf("%s: RateLimit is %q", res, state)
		}
		windows[strings.Trim(name, `"`)] = w
	}
	for part := range strings.SplitSeq(res.header.Get("RateLimit-Policy"), ", ") {
		var quota, seconds int
		name, params, _ := strings.Cut(part, ";")
		name = strings.Trim(name, `"`)
		w, ok := windows[name]
		if _, err := fmt.Sscanf(params, "q=%d;w=%d", &quota, &seconds); err != nil || !ok {
			k.fatalf("%s: RateLimit-Policy is %q, RateLimit %q", res, res.header.Get("RateLimit-Policy"), state)
		}
		w.limit = quota
		windows[name] = w
	}
	return windows, true
}

// window is the state of a quota window: a period for which requests are counted.
type window struct {
	limit, remaining int // requests
	reset            int // seconds until the window ends
}

func (k *ruleRun) intHeader(res *response, name string) int {
	n, err := strconv.Atoi(res.header.Get(name))
	if err != nil {
		k.fatalf("%s: %s is %q, want a whole number", res, name, res.header.Get(name))
	}
	return n
}

func checkWindows(k *ruleRun) {
	for range 3 {
		res := k.getOK("/v1/rates?limit=1")
		windows, ok := k.limitWindows(res)
		if !ok {
			k.notef("the server sends no limit headers")
			return
		}
		limit, remaining, reset := k.intHeader(res, "X-RateLimit-Limit"), k.intHeader(res, "X-RateLimit-Remaining"), k.intHeader(res, "X-RateLimit-Reset")
		tighter := windows["minute"]
		if day := windows["day"]; day.remaining < tighter.remaining || day.remaining == tighter.remaining && day.reset > tighter.reset {
			tighter = day
		}
		if limit != tighter.limit || remaining != tighter.remaining {
			k.errorf("%s: X-RateLimit is %d of %d, the tighter window %d of %d", res, remaining, limit, tighter.remaining, tighter.limit)
		}
		generatedAt := k.parseGeneratedAt(decode[list[any]](k, res).Meta.GeneratedAt).Unix()
		if seconds := int64(reset) - generatedAt; seconds < int64(tighter.reset)-1 || seconds > int64(tighter.reset)+2 {
			k.errorf("%s: X-RateLimit-Reset is %d, %d s ahead, RateLimit says %d s", res, reset, seconds, tighter.reset)
		}
	}
}

func checkCosts(k *ruleRun) {
	tag := k.getOK("/v1/rates").header.Get("ETag")
	for _, c := range []struct {
		method, target, header string
		status, cost           int
	}{
		{http.MethodGet, "/v1/rates", "", 200, 1}, {http.MethodHead, "/v1/rates", "", 200, 1}, {http.MethodGet, "/v1/rates", tag, 304, 1},
		{http.MethodGet, "/v1/rates?limit=0", "", 400, 1}, {http.MethodGet, "/v1/institutions/no-such-bank", "", 404, 1},
		{http.MethodGet, "/v1/nothing", "", 404, 0}, {http.MethodPost, "/v1/rates", "", 405, 0}, {http.MethodOptions, "/v1/rates", "", 204, 0},
	} {
		before, ok := k.limitWindows(k.getOK("/v1/currencies"))
		if !ok {
			k.notef("the server sends no limit headers")
			return
		}
		r := request{method: c.method, target: c.target, waitForLimit: true}
		if c.header != "" {
			r.header = []string{"If-None-Match", c.header}
		}
		if res := k.send(r); res.status != c.status {
			k.errorf("%s, want %d", res, c.status)
			continue
		}
		after, _ := k.limitWindows(k.getOK("/v1/currencies"))
		if spent := before["day"].remaining - after["day"].remaining; spent != c.cost+1 {
			k.errorf("%s %s (%d) costs %d requests, want %d", c.method, c.target, c.status, spent-1, c.cost)
		}
	}
}

func checkErrorPrecedence(k *ruleRun) {
	k.wantError("/v1/nothing?limit=0", http.StatusNotFound, "not_found")
	k.checkError(k.send(request{method: http.MethodPost, target: "/v1/nothing"}), http.StatusNotFound, "not_found")
	k.checkError(k.send(request{method: http.MethodPut, target: "/v1/rates?limit=0"}), http.StatusMethodNotAllowed, "method_not_allowed")
}

const exhaustMax = 1000 // number of requests after which checkExhaust gives up

func checkExhaust(k *ruleRun) {
	windows, ok := k.limitWindows(k.getOK("/v1/currencies"))
	if !ok {
		k.fatalf("Exhaust is set, and the server sends no limit headers")
	}
	remaining := min(windows["minute"].remaining, windows["day"].remaining)
	for sent := 0; ; sent++ {
		res := k.send(request{method: http.MethodGet, target: "/v1/currencies"})
		if res.status == http.StatusTooManyRequests {
			if sent < remaining {
				k.errorf("%d requests were remaining, but the server returned 429 after %d", remaining, sent)
			}
			code := decode[errorBody](k, res).Error.Code
			if code != "rate_limited" && code != "quota_exceeded" {
				k.errorf("%s: error.code is %q", res, code)
			}
			if k.intHeader(res, "X-RateLimit-Remaining") != 0 || k.intHeader(res, "Retry-After") < 1 {
				k.errorf("%s: X-RateLimit-Remaining %s, Retry-After %s", res, res.header.Get("X-RateLimit-Remaining"), res.header.Get("Retry-After"))
			}
			break
		}
		if sent > remaining && sent > exhaustMax || sent >= remaining+windows["minute"].limit {
			k.fatalf("%d requests were remaining, but the server accepted %d", remaining, sent+1)
		}
	}
	if res := k.get("/v1/currencies"); res.status != http.StatusOK {
		k.errorf("%s after Retry-After", res)
	}
}

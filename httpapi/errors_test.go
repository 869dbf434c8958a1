package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// everyFault is what a service can answer, with the status that it becomes.
func everyFault() map[string]struct {
	err    error
	status int
} {
	return map[string]struct {
		err    error
		status int
	}{
		"none":        {nil, 0},
		"unavailable": {&engine.Error{Code: engine.CodeDataUnavailable, Message: "m", RetryAfter: 60 * time.Second}, 503},
		"overloaded":  {&engine.Error{Code: engine.CodeOverloaded, Message: "m"}, 503},
		"read only":   {&engine.Error{Code: engine.CodeReadOnly, Message: "m", RetryAfter: time.Millisecond}, 503},
		"internal":    {&engine.Error{Code: engine.CodeInternalError, Message: "secret", Cause: errors.New("secret")}, 500},
		"nameless":    {errors.New("secret"), 500},
		"odd code":    {&engine.Error{Code: "odd", Message: "secret"}, 500},
	}
}

// TestQ16_E1_EveryAnswer walks over routes, methods and faults: every answer has its id and the headers of reliability goal
// S10, every error is the error object with that id.
func TestQ16_E1_EveryAnswer(t *testing.T) {
	targets := []string{"/", "/v1/nothing", "/v1/rates?limit=0&x=y", "/v1/institutions/no-such", "/v1/institutions/%zz"}
	for _, target := range goldenTargets() {
		targets = append(targets, target)
	}
	walked := 0
	for name, fault := range everyFault() {
		for _, panics := range []bool{false, true} {
			f := newFixture(t, nil)
			f.service.fault = fault.err
			if panics {
				f.service.panics = errors.New("secret")
			}
			for _, target := range targets {
				for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "DELETE"} {
					a := f.do(t, method, target, "Authorization: Bearer secret")
					checkAnswer(t, strings.Join([]string{name, method, target}, " "), method, a)
					walked++
				}
			}
		}
	}
	if walked == 0 {
		t.Fatal("nothing was walked over")
	}
}

// checkAnswer holds an answer against what all answers share.
func checkAnswer(t *testing.T, what, method string, a answer) {
	t.Helper()
	for _, problem := range answerProblems(method, a) {
		t.Errorf("%s: %d: %s", what, a.status, problem)
	}
}

func answerProblems(method string, a answer) (problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	id := a.header.Get("X-Request-Id")
	if len(id) != requestIDBytes || len(a.header.Values("X-Request-Id")) != 1 {
		wrong("request id %q", id)
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options":       "nosniff",
		"Content-Security-Policy":      contentPolicy,
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Resource-Policy": "cross-origin",
		"Access-Control-Allow-Origin":  "*",
		"Vary":                         "Accept-Encoding",
		"Server":                       "",
	} {
		if got := a.header.Get(name); got != want {
			wrong("%s is %q, want %q", name, got, want)
		}
	}
	if bytes.Contains(a.body, []byte("secret")) {
		wrong("the answer tells a cause or a key: %s", a.body)
	}
	if a.status < 400 {
		return problems
	}
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("ETag") != "" {
		wrong("an error may be kept: %v", a.header)
	}
	if (a.status == 503) != (a.header.Get("Retry-After") != "") || (a.status == 405) != (a.header.Get("Allow") != "") {
		wrong("Retry-After %q and Allow %q", a.header.Get("Retry-After"), a.header.Get("Allow"))
	}
	if method == http.MethodHead {
		return problems
	}
	if err := judge("error", a); err != nil {
		wrong("%v: %s", err, a.body)
	}
	if !bytes.Contains(a.body, []byte(`"requestId":"`+id+`"`)) {
		wrong("the body has another id than the header, %s: %s", id, a.body)
	}
	return problems
}

// TestQ16_E1_Control: each of these changes to a good error is seen.
func TestQ16_E1_Control(t *testing.T) {
	good := newFixture(t, nil).get(t, "/v1/rates?limit=0")
	if problems := answerProblems("GET", good); len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, value := range map[string]string{
		"X-Request-Id": "0000000000000009", "Cache-Control": "private", "Etag": "x", "Server": "fasthttp", "Vary": "", "Allow": "GET",
		"Access-Control-Allow-Origin": "", "X-Content-Type-Options": "", "Retry-After": "1", "Content-Security-Policy": "",
	} {
		bad := good
		bad.header = good.header.Clone()
		bad.header.Set(name, value)
		if len(answerProblems("GET", bad)) == 0 {
			t.Errorf("%s: %q passes", name, value)
		}
	}
	for _, body := range []string{"", "{}", `{"error":"x"}`, string(good.body[:len(good.body)-1]), string(good.body) + "secret"} {
		bad := good
		bad.body = []byte(body)
		if len(answerProblems("GET", bad)) == 0 {
			t.Errorf("%s passes", body)
		}
	}
}

// TestE1_Statuses: each code has its status, and no other.
func TestE1_Statuses(t *testing.T) {
	for code, want := range map[engine.Code]int{
		engine.CodeInvalidParameters: 400, engine.CodeMalformedRequest: 400, engine.CodeRequestTimeout: 408,
		engine.CodeHeadersTooLarge: 431, engine.CodeNotFound: 404, engine.CodeInstitutionNotFound: 404,
		engine.CodeMethodNotAllowed: 405, engine.CodePayloadTooLarge: 413, engine.CodeInternalError: 500,
		engine.CodeDataUnavailable: 503, engine.CodeOverloaded: 503, engine.CodeReadOnly: 503,
	} {
		if got, known := status(code); got != want || !known {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
	if got, known := status("odd"); known {
		t.Errorf("an unknown code has the status %d", got)
	}
}

func TestE1_ServiceFaults(t *testing.T) {
	for name, fault := range everyFault() {
		f := newFixture(t, nil)
		f.service.fault = fault.err
		for _, operation := range []string{"rates", "best", "history", "convert"} {
			a := f.get(t, goldenTargets()[operation])
			if fault.err != nil && a.status != fault.status {
				t.Errorf("%s, %s: %d, want %d", operation, name, a.status, fault.status)
			}
		}
	}
}

// TestE2_DetailsOnlyOn400 reads the golden errors.
func TestE2_DetailsOnlyOn400(t *testing.T) {
	for _, c := range goldenCases() {
		if a := c.run(t); a.status >= 400 && (len(a.fault(t).Error.Details) > 0) != (a.status == 400) {
			t.Errorf("%s: %s", c.name, a.body)
		}
	}
}

func TestE4_Unavailable(t *testing.T) {
	tests := []struct {
		wait time.Duration
		want string
	}{{0, "1"}, {-time.Second, "1"}, {time.Millisecond, "1"}, {time.Second, "1"}, {1001 * time.Millisecond, "2"}, {time.Minute, "60"}}
	for _, test := range tests {
		f := newFixture(t, nil)
		f.service.fault = &engine.Error{Code: engine.CodeDataUnavailable, Message: "Nothing is loaded yet.", RetryAfter: test.wait}
		a := f.get(t, goldenTargets()["rates"])
		if a.status != 503 || a.header.Get("Retry-After") != test.want || a.fault(t).Error.Code != "data_unavailable" {
			t.Errorf("%v: %d, Retry-After %q", test.wait, a.status, a.header.Get("Retry-After"))
		}
		for _, target := range []string{"/v1/currencies", "/v1/institutions", "/v1/institutions/bhd"} {
			if a := f.get(t, target); a.status != 200 {
				t.Errorf("%s before the first rate: %d", target, a.status)
			}
		}
	}
	f := newFixture(t, nil)
	for _, r := range f.service.published {
		r.Stale = true
	}
	if list := f.get(t, "/v1/rates").list(t); list.Data[0]["stale"] != true || list.Meta.Total == 0 {
		t.Errorf("all expired: %+v", list.Meta)
	}
}

// TestL7_ReadinessBeforeParameters: while nothing is loaded a bad parameter is no news; where the catalogue answers, it is.
func TestL7_ReadinessBeforeParameters(t *testing.T) {
	f := newFixture(t, nil)
	f.service.fault = &engine.Error{Code: engine.CodeDataUnavailable, Message: "Nothing is loaded yet."}
	for _, operation := range []string{"/v1/rates", "/v1/rates/best", "/v1/rates/history", "/v1/convert"} {
		if a := f.get(t, operation+"?limit=0"); a.status != 503 {
			t.Errorf("%s: %d", operation, a.status)
		}
	}
	for _, operation := range []string{"/v1/currencies", "/v1/institutions", "/v1/institutions/bhd"} {
		if a := f.get(t, operation+"?limit=0"); a.status != 400 {
			t.Errorf("%s: %d", operation, a.status)
		}
	}
	if a := f.do(t, "POST", "/v1/rates?limit=0"); a.status != 405 {
		t.Errorf("the method comes first: %d", a.status)
	}
	if a := f.do(t, "POST", "/v1/rate?limit=0"); a.status != 404 {
		t.Errorf("the route comes first: %d", a.status)
	}
}

// TestE5_CauseOnlyInLog: the caller gets an id, the log the cause under it; and the server lives.
func TestE5_CauseOnlyInLog(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, func(c *Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	f.service.fault = errors.New("disk on fire")
	failed := f.get(t, goldenTargets()["best"], "Authorization: Bearer canary")
	f.service.fault, f.service.panics = nil, "index out of order"
	panicked := f.get(t, goldenTargets()["best"], "Authorization: Bearer canary")
	f.service.panics = nil
	for cause, a := range map[string]answer{"disk on fire": failed, "index out of order": panicked} {
		id := a.fault(t).Error.RequestID
		if a.status != 500 || strings.Contains(string(a.body), cause) {
			t.Errorf("%d %s", a.status, a.body)
		}
		var line string
		for _, l := range strings.Split(log.String(), "\n") {
			if strings.Contains(l, id) {
				line = l
			}
		}
		if !strings.Contains(line, cause) {
			t.Errorf("the log has no line with %s and %q: %s", id, cause, log.String())
		}
	}
	if strings.Contains(log.String(), "canary") || strings.Contains(log.String(), "currency=USD") {
		t.Errorf("the log quotes the request: %s", log.String())
	}
	if a := f.get(t, goldenTargets()["best"]); a.status != 200 {
		t.Errorf("after a panic: %d", a.status)
	}
}

// TestE5_OverloadIsQuiet: shedding load must not write a line for each request.
func TestE5_OverloadIsQuiet(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	f.service.fault = &engine.Error{Code: engine.CodeOverloaded, Message: "Busy."}
	f.get(t, goldenTargets()["best"])
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

// TestClassLog: the library's words reach the log without what they quote.
func TestClassLog(t *testing.T) {
	var log bytes.Buffer
	handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})
	classLog{slog.New(handler)}.Printf("error when serving %q: %v", "canary", context.Canceled)
	if !strings.Contains(log.String(), "error when serving") || strings.Contains(log.String(), "canary") {
		t.Error(log.String())
	}
}

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

type plannedFault struct {
	err    error
	status int
}

// everyFault is what a service can answer, with the status that it becomes.
func everyFault() map[string]plannedFault {
	return map[string]plannedFault{
		"none":        {nil, 0},
		"unavailable": {fault(engine.CodeDataUnavailable, "m", time.Minute), 503},
		"overloaded":  {fault(engine.CodeOverloaded, "m", 0), 503},
		"read only":   {fault(engine.CodeReadOnly, "m", time.Millisecond), 503},
		"internal":    {&engine.Error{Code: engine.CodeInternalError, Message: "secret", Cause: errors.New("secret")}, 500},
		"nameless":    {errors.New("secret"), 500},
		"odd code":    {fault("odd", "secret", 0), 500},
	}
}

// checkAnswer holds an answer of a server with an admitter against what all answers share.
func checkAnswer(t *testing.T, what, method, target string, a answer) {
	t.Helper()
	wrong := func(problem string) {
		t.Errorf("%s: %s %s: %d: %s: %v %s", what, method, target, a.status, problem, a.header, a.body)
	}
	for _, problem := range securityProblems(strings.HasPrefix(target, accountPrefix), a) {
		wrong(problem)
	}
	if (a.status == 405) != (a.header.Get("Allow") != "") && a.status != 204 || a.status >= 400 && a.header.Get("ETag") != "" {
		wrong("Allow or ETag")
	}
	if a.status >= 400 && bytes.Contains(a.body, []byte("secret")) {
		wrong("the answer tells a cause or a key")
	}
	if a.status >= 400 && method != http.MethodHead && a.fault(t).Error.RequestID != a.header.Get("X-Request-Id") {
		wrong("the body has another id than the header")
	}
}

// TestE5_CauseOnlyInLog: the caller gets an id, the log the cause under it, and the server lives. Shedding load
// writes no line.
func TestE5_CauseOnlyInLog(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, func(c *Config) { c.Logger = logTo(&log) })
	f.service.fault = fault(engine.CodeOverloaded, "Busy.", 0)
	f.get(t, bestTarget)
	if log.Len() > 0 {
		t.Error(log.String())
	}
	f.service.fault = errors.New("disk on fire")
	failed := f.get(t, bestTarget, "Authorization: Bearer canary")
	f.service.fault, f.service.panics = nil, "index out of order"
	panicked := f.get(t, bestTarget, "Authorization: Bearer canary")
	f.service.panics = nil
	for cause, a := range map[string]answer{"disk on fire": failed, "index out of order": panicked} {
		if a.status != 500 || strings.Contains(string(a.body), cause) {
			t.Errorf("%d %s", a.status, a.body)
		}
		var line string
		for l := range strings.Lines(log.String()) {
			if strings.Contains(l, a.fault(t).Error.RequestID) {
				line = l
			}
		}
		if !strings.Contains(line, cause) {
			t.Errorf("the log has no line with the id and %q: %s", cause, log.String())
		}
	}
	if strings.Contains(log.String(), "canary") || strings.Contains(log.String(), "currency=USD") {
		t.Errorf("the log quotes the request: %s", log.String())
	}
	f.takes(t, bestTarget)
	log.Reset()
	libraryLog{logTo(&log)}.Printf("error when serving %q: %v", "canary", context.Canceled)
	if !strings.Contains(log.String(), "error when serving") || strings.Contains(log.String(), "canary") {
		t.Errorf("the library's words: %s", log.String())
	}
}

func TestE4_Unavailable(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0: "1", -time.Second: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60",
	} {
		f := newFixture(t, nil)
		f.service.fault = fault(engine.CodeDataUnavailable, "Nothing is loaded yet.", wait)
		if a := f.get(t, "/v1/rates"); a.code(t) != "503 data_unavailable" || a.header.Get("Retry-After") != want {
			t.Errorf("%v: %d, Retry-After %q", wait, a.status, a.header.Get("Retry-After"))
		}
		f.takes(t, "/v1/currencies", "/v1/institutions", "/v1/institutions/bhd")
	}
}

package apitest

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestControl(t *testing.T) {
	srv := Start(t, Seed("standard"), Limits())
	handler, err := srv.ControlHandler()
	if err != nil {
		t.Fatal(err)
	}
	call := func(method, path, body string) (int, string) {
		request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		if body != "plain" {
			request.Header.Set("Content-Type", "application/json")
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Code, strings.TrimSpace(answer.Body.String())
	}
	for _, step := range []struct {
		method, path, body string
		status             int
		part               string
	}{
		{"GET", "/_mock/clock", "", 200, `{"now":"2026-03-02T16:00:00Z"}`},
		{"POST", "/_mock/clock", `{"advance":"1h"}`, 200, `17:00:00Z`},
		{"POST", "/_mock/clock", `{"set":"2026-03-02T16:30:00Z"}`, 200, `16:30:00Z`},
		{"POST", "/_mock/clock", `{}`, 400, `either`},
		{"POST", "/_mock/clock", `{"advance":"soon"}`, 400, `advance`},
		{"POST", "/_mock/rates", `[{"institution":"cooperativa-norte","currency":"USD","buy":"58.20","sell":"58.80"}]`, 200, `{}`},
		{"POST", "/_mock/rates", `[{"institution":"ambar","currency":"USD","sell":"9"}]`, 400, `out_of_band`},
		{"POST", "/_mock/rates", `[{"institution":"ambar","currency":"USD","buy":"68.20","sell":"69.20"}]`, 400, `tasard mock --lenient`},
		{"POST", "/_mock/rates", `[{"institution":"acme","currency":"USD","sell":"59"}]`, 400, `tasard mock --catalogue FILE`},
		{"POST", "/_mock/rates", `[{"institution":"ambar","colour":"red"}]`, 400, `colour`},
		{"POST", "/_mock/faults", `{"route":"/v1/rates/best","status":503,"times":1,"retryAfter":"9s"}`, 200, `{}`},
		{"POST", "/_mock/faults", `{"status":404}`, 400, `404`},
		{"POST", "/_mock/faults", `{"delay":"long"}`, 400, `delay`},
		{"GET", best, "", 404, ``},
		{"DELETE", "/_mock/faults", "", 200, `{}`},
		{"POST", "/_mock/keys", ``, 200, `{"key":"tasard_test_`},
		{"POST", "/_mock/keys", `{"email":"ana@example.do"}`, 200, `{"key":"tasard_test_`},
		{"GET", "/_mock/codes?email=ana@example.do", "", 200, `{"code":"`},
		{"GET", "/_mock/codes?email=sol@example.do", "", 400, `no login code`},
		{"POST", "/_mock/crash", "plain", 400, `Content-Type`}, // a call that any page could make
		{"POST", "/_mock/restart", "", 200, `{}`},
		{"POST", "/_mock/crash", "", 200, `{}`},
		{"POST", "/_mock/reset", "", 200, `{}`},
		{"GET", "/_mock/clock", "", 200, `{"now":"2026-03-02T16:00:00Z"}`},
		{"PUT", "/_mock/clock", "", 405, ``},
		{"GET", "/_mock/", "", 200, `{"controls":[{"description":"the time of the node"`},
		{"POST", "/_mock/faults", `{"route":"/v1/rate/best","status":503}`, 400, `no such route`},
	} {
		if status, body := call(step.method, step.path, step.body); status != step.status || !strings.Contains(body, step.part) {
			t.Errorf("%s %s %s: %d %s", step.method, step.path, step.body, status, body)
		}
	}
}

// TestControl_Browser: a call without body needs no content type, as fetch sends
// none, but it must not come from a page of another site.
func TestControl_Browser(t *testing.T) {
	handler, err := Start(t).ControlHandler()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path, header, value string
		status                      int
		part                        string
	}{
		{"POST", "/_mock/reset", "Sec-Fetch-Site", "same-site", 200, "{}"},
		{"POST", "/_mock/reset", "Sec-Fetch-Site", "cross-site", 400, "another site"},
	} {
		request := httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)
		request.Header.Set(c.header, c.value)
		answer := httptest.NewRecorder()
		if handler.ServeHTTP(answer, request); answer.Code != c.status || !strings.Contains(answer.Body.String(), c.part) {
			t.Errorf("%s %s, %s %s: %d %s", c.method, c.path, c.header, c.value, answer.Code, answer.Body)
		}
	}
}

// TestParseFault checks the texts of --fail.
func TestParseFault(t *testing.T) {
	for text, want := range map[string]Fault{
		"503": {Status: 503}, "429": {Status: 429}, "500@/v1/rates/best": {Status: 500, Route: "/v1/rates/best"}, "503@GET /v1/rates": {Status: 503, Route: "GET /v1/rates"},
	} {
		got, err := ParseFault(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "404", "503:0.5", "0x1f7", ":1"} {
		if got, err := ParseFault(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

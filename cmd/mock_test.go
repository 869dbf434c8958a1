package cmd

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/httpapi/apitest"
	"github.com/tasard/tasard/httpapi/apitest/conformance"
)

// startMock is a mock with free ports, and where its buttons are.
func startMock(t *testing.T, args ...string) (mock *program, buttons string) {
	t.Helper()
	return startMockIn(t, t.TempDir(), args...)
}

// startMockIn is startMock with temporary files in a place of its own.
func startMockIn(t *testing.T, temp string, args ...string) (mock *program, buttons string) {
	t.Helper()
	args = append([]string{"mock", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"}, args...)
	p := startWith(t, "now", []string{"TMPDIR=" + temp}, args...).listening()
	p.await("buttons on ")
	found := regexp.MustCompile(`buttons on (http://\S+)`).FindStringSubmatch(p.output())
	if found == nil {
		t.Fatalf("no buttons in\n%s", p.output())
	}
	return p, found[1]
}

// press is one call of a button, which must do it.
func press(t *testing.T, url, body string) string {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body)) //nolint:forbidigo // loopback; the test has a deadline
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s %v", url, body, res.StatusCode, text, err)
	}
	return string(text)
}

// TestMock: the same answers as in a Go test, time as a button, and nothing left behind.
func TestMock(t *testing.T) {
	t.Parallel()
	srv := apitest.Start(t, apitest.Seed("standard"))
	temp := t.TempDir()
	p, buttons := startMockIn(t, temp)
	const best = "/v1/rates/best?currency=USD&operation=buy"
	inProcess, err := srv.Client.Get(srv.URL + best)
	if err != nil {
		t.Fatal(err)
	}
	defer inProcess.Body.Close()
	want, err := io.ReadAll(inProcess.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.mustGet(best); got != string(want) {
		t.Errorf("the mock answers\n%s\nthe harness\n%s", got, want)
	}
	press(t, buttons+"clock", `{"advance":"26h"}`)
	if got := p.mustGet(best); !strings.Contains(got, `"data":[]`) {
		t.Errorf("a day later: %s", got)
	}
	press(t, buttons+"reset", "")
	if got := p.mustGet(best); got != string(want) {
		t.Errorf("reset: %s", got)
	}
	p.stop(os.Interrupt)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestMock_Flags: clock, faults, limits and keys are as they were asked for.
func TestMock_Flags(t *testing.T) {
	p, buttons := startMock(t, "--clock", "2026-03-02T17:00:00Z", "--limits", "on", "--keys-required", "on", "--fail", "503@/v1/currencies", "--seed", "standard/v1")
	anyone := caller{t: t, node: p}
	if got := anyone.must("GET", "/v1/rates", "", http.StatusUnauthorized, "missing_key"); got.header.Get("Date") != "Mon, 02 Mar 2026 17:00:00 GMT" {
		t.Errorf("Date is %s", got.header.Get("Date"))
	}
	key := regexp.MustCompile(`"(tasard_test_\w+)"`).FindStringSubmatch(press(t, buttons+"keys", ""))
	if key == nil {
		t.Fatal("no key")
	}
	user := anyone.with(key[1])
	if got := user.must("GET", "/v1/rates", "", http.StatusOK, ""); got.left(t, "minute") != 59 {
		t.Errorf("%v", got.header)
	}
	user.must("GET", "/v1/currencies", "", http.StatusServiceUnavailable, "data_unavailable")
}

// TestMock_Refuses: what does not make sense is told in the name of its flag.
func TestMock_Refuses(t *testing.T) {
	for want, args := range map[string][]string{
		"--fail": {"--fail", "404"}, "standard/v1": {"--seed", "none"}, "--clock": {"--clock", "noon"}, "--control": {"--control", "nowhere"},
	} {
		got := run(t, nil, nil, append([]string{"mock", "--listen", "127.0.0.1:0"}, args...)...)
		if got.code != exit.Usage || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: exit code %d: %s", args, got.code, got.stderr)
		}
	}
}

// TestMock_Conformance: the contract is kept over a port as well, by a server that is asked from outside.
func TestMock_Conformance(t *testing.T) {
	t.Parallel()
	p, buttons := startMock(t)
	conformance.Run(t, p.url, conformance.Options{Code: func(email string) (string, error) {
		res, err := http.Get(buttons + "codes?email=" + email) //nolint:forbidigo // loopback; the test has a deadline
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return strings.Trim(strings.TrimPrefix(strings.TrimSpace(string(body)), `{"code":`), `"}`), err
	}})
}

package cmd

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
)

// doctorReport is what doctor --json prints.
type doctorReport struct {
	Worst     string
	Findings  []doctorFinding
	KeyPolicy []doctorView
}

type doctorFinding struct{ Level, Check, Message, Advice string }

type doctorView struct {
	At      time.Time
	Status  string
	Headers []string
}

// runDoctor is what doctor says as JSON.
func runDoctor(t *testing.T, args ...string) (doctorReport, result) {
	t.Helper()
	got := run(t, nil, nil, append([]string{"doctor", "--json"}, args...)...)
	report := asJSON[doctorReport](t, got.stdout)
	return report, got
}

// of is the finding of a check.
func (r doctorReport) of(t *testing.T, check string) doctorFinding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("nothing about %s in %+v", check, r.Findings)
	return doctorFinding{}
}

// header is the value of a header line of a view, "" without one.
func (v doctorView) header(name string) string {
	for _, line := range v.Headers {
		if text, found := strings.CutPrefix(line, name+": "); found {
			return text
		}
	}
	return ""
}

// TestDoctor_BeforeTheFirstStart wants a machine without a node to be looked at, and nothing to be left there.
func TestDoctor_BeforeTheFirstStart(t *testing.T) {
	data := t.TempDir() + "/data"
	report, got := runDoctor(t, "--data", data, "--listen", "127.0.0.1:0")
	for check, level := range map[string]string{
		"settings": "OK", "node": "OK", "zone": "OK", "data": "OK", "log": "OK", "address": "OK",
		"certificate": "OK", "mail": "WARN", "sources": "OK", "keys": "OK",
	} {
		if f := report.of(t, check); f.Level != level {
			t.Errorf("%+v, want %s", f, level)
		}
	}
	if report.Worst != "WARN" || got.code != exit.OK {
		t.Errorf("worst %s, exit code %d", report.Worst, got.code)
	}
	if found := report.of(t, "sources").Message; !strings.Contains(found, "not tried (--network)") || !strings.Contains(found, "www.bancentral.gov.do:443") {
		t.Errorf("who would be asked: %q", found)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the data directory was made")
	}
}

// TestDoctor_FindsWhatIsWrong wants each planted fault in a line of its own, and exit code 1.
func TestDoctor_FindsWhatIsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	data := importedData(t, observation(1, "59", "60"))
	if err := os.Chmod(data, 0o777); err != nil {
		t.Fatal(err)
	}
	report, got := runDoctor(t, "--data", data, "--listen", taken.Addr().String(), "--connections", "1000000", "--smtp-tls", "off",
		"--smtp-addr", "127.0.0.1:1", "--mail-from", "a@example.com", "--catalogue", data+"/none.json")
	for check, want := range map[string]doctorFinding{
		"settings": {Level: "FAIL", Message: "--catalogue: "}, "data": {Level: "FAIL", Message: "every user can write"},
		"address": {Level: "FAIL", Message: "address already in use by another program"}, "descriptors": {Level: "WARN", Message: "connections need 1,000,256"},
		"mail": {Level: "FAIL", Message: "127.0.0.1:1 accepts no e-mail: at connect"}, "log": {Level: "OK", Message: "valid"},
	} {
		if f := report.of(t, check); f.Level != want.Level || !strings.Contains(f.Message, want.Message) {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
	if f := report.of(t, "sync"); !strings.Contains(f.Message, "of 20 syncs") {
		t.Errorf("the disk is not timed: %+v", f)
	}
	if got.code != exit.CheckFailed || report.Worst != "FAIL" {
		t.Errorf("exit code %d, worst %s", got.code, report.Worst)
	}
	oneLine(t, got.stderr, "FAIL")
	files, err := os.ReadDir(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.Contains(file.Name(), "doctor") {
			t.Errorf("%s is left", file.Name())
		}
	}
	text := run(t, nil, nil, "doctor", "--data", data).stdout
	if !strings.Contains(text, "\nDay 0, ") || !strings.Contains(text, "HTTP/1.1 401 Unauthorized") || !strings.HasPrefix(text, "OK ") {
		t.Errorf("for people:\n%s", text)
	}
}

// TestDoctor_BesideANode wants a running node to be recognised and not disturbed, and its mail server to be tried
// without an e-mail.
func TestDoctor_BesideANode(t *testing.T) {
	t.Parallel()
	box := newMailServer(t)
	data := t.TempDir()
	p := startNode(t, data)
	_, address, _ := strings.Cut(p.URL, "//")
	for range 60 {
		request, _ := http.NewRequest("GET", p.URL+"/livez", nil)
		request.Header.Set("X-Forwarded-For", "192.0.2.1")
		answer, err := http.DefaultClient.Do(request) //nolint:forbidigo // loopback; the test has a deadline
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	report, _ := runDoctor(t, append(box.args(), "--data", data, "--listen", address)...)
	if f := report.of(t, "proxy"); f.Level != "WARN" || !strings.Contains(f.Message, "requests from 127.0.0.1") || !strings.Contains(f.Advice, "--trusted-proxy") {
		t.Errorf("%+v", f)
	}
	for check, want := range map[string]string{
		"node": "a node runs", "log": "a running node uses it", "address": "by the running node", "sync": "not timed", "mail": "login as " + mailUser,
	} {
		if f := report.of(t, check); f.Level != "OK" || !strings.Contains(f.Message, want) {
			t.Errorf("%+v, want %q", f, want)
		}
	}
	if box.Arrived() > 0 {
		t.Error("a letter was sent")
	}
	p.mustGet("/v1/institutions")
}

// TestK7_DoctorRehearses wants the views to be those of a real node with the same settings, to the header: what it
// announces, and 401s from the moment on.
func TestK7_DoctorRehearses(t *testing.T) {
	t.Parallel()
	const required = "2026-07-20T04:00:00Z"
	data := t.TempDir()
	p := startImported(t, serveArgs(data, "--limits", "on"), observation(1, "59", "60"))
	mustRun(t, "admin", "keys-required", "--data", data, "--at", required)
	report, _ := runDoctor(t, "--data", data, "--listen", "127.0.0.1:0", "--no-collect")
	if len(report.KeyPolicy) != 3 {
		t.Fatalf("%d views", len(report.KeyPolicy))
	}
	before, at, after := report.KeyPolicy[0], report.KeyPolicy[1], report.KeyPolicy[2]
	_, real := p.ask("GET", "/v1/rates/best?currency=USD&operation=buy")
	for _, name := range []string{"Deprecation", "Sunset", "Link", "Vary", "RateLimit-Policy", "Content-Security-Policy", "Access-Control-Allow-Origin"} {
		if want := real.Get(name); want == "" || before.header(name) != want {
			t.Errorf("%s: %q, the node says %q", name, before.header(name), want)
		}
	}
	if before.Status != "HTTP/1.1 200 OK" || before.header("Sunset") != "Mon, 20 Jul 2026 04:00:00 GMT" {
		t.Errorf("before: %+v", before)
	}
	for _, view := range []doctorView{at, after} {
		if view.Status != "HTTP/1.1 401 Unauthorized" || view.header("Sunset")+view.header("Deprecation") != "" || view.header("Www-Authenticate") == "" {
			t.Errorf("%+v", view)
		}
	}
	if got := fmt.Sprint(before.At, at.At, after.At); got != "2026-07-06 04:00:00 +0000 UTC 2026-07-20 04:00:00 +0000 UTC 2026-07-21 04:00:00 +0000 UTC" {
		t.Errorf("days %s", got)
	}
}

// TestDoctor_Network wants connections to the host of each source, without a request, and a missing contact to be
// reported.
func TestDoctor_Network(t *testing.T) {
	t.Parallel()
	p := startWith(t, realNow, []string{withSite + "=7"}, "doctor", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--network")
	if code := p.AwaitExit(); code != exit.OK {
		t.Errorf("exit code %d:\n%s", code, p.Output())
	}
	text := p.Output()
	reached := strings.Count(text, " is reachable")
	if reached < 20 || strings.Contains(text, "is not reachable") || !strings.Contains(text, "www.bancentral.gov.do:443 is reachable") {
		t.Errorf("%d hosts are reached:\n%s", reached, text)
	}
	if !strings.Contains(text, "--collect-contact") {
		t.Errorf("the missing contact is not reported:\n%s", text)
	}
}

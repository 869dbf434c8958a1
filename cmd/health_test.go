package cmd

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// TestS15_BothListeners wants the same conditions at both listeners, in the metrics and from tasard ping: without a
// node, before the first rate, after it, and when the node has stopped.
func TestS15_BothListeners(t *testing.T) {
	data := t.TempDir()
	ping := func(code int, said string, args ...string) {
		t.Helper()
		got := run(t, nil, nil, append([]string{"ping", "--data", data}, args...)...)
		if got.code != code || !strings.HasPrefix(got.stdout+got.stderr, said) {
			t.Errorf("ping %s: %+v, want %d, %s", args, got, code, said)
		}
	}
	ping(exit.Unavailable, "tasard ping: no node listens", "--live")
	p := startNode(t, data)
	if status, headers := p.ask(http.MethodGet, "/readyz"); status != http.StatusServiceUnavailable || headers.Get("Retry-After") != "2" {
		t.Errorf("without rates: %d, Retry-After %q", status, headers.Get("Retry-After"))
	}
	if body := p.mustGet("/livez"); body != `{"status":"live"}` {
		t.Errorf("/livez: %s", body)
	}
	ping(exit.Unavailable, "unavailable, data: empty\n")
	ping(exit.OK, "unavailable, data: empty\n", "--live")
	text := askSocket(t, data, admin.MetricsPath)
	for _, line := range []string{
		`tasard_condition{name="data",state="empty"} 1`, `tasard_condition{name="log",state="ok"} 1`, `tasard_condition{name="mail",state="ok"} 1`,
		`tasard_condition{name="sources",state="ok"} 1`, `tasard_readiness{status="unavailable"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("metrics lack %s", line)
		}
	}
	runAdmin(t, data, "rates", "set", "popular", "USD", "--buy", "58.10", "--sell", "59.30")
	var public struct {
		Status     engine.Readiness
		Conditions []struct{ Name, State string }
	}
	if err := json.Unmarshal([]byte(p.mustGet("/readyz")), &public); err != nil || public.Status != engine.Ready {
		t.Errorf("with a rate: %+v, %v", public, err)
	}
	shown := asJSON[admin.Readiness](t, askSocket(t, data, admin.ReadyzPath))
	if shown.Status != engine.Ready || len(shown.Conditions) != len(public.Conditions) || shown.Version == "" {
		t.Errorf("at the management socket: %+v", shown)
	}
	if got := run(t, []string{"TASARD_ADMIN_SOCKET=" + filepath.Join(data, admin.SocketName)}, nil, "ping"); got.code != exit.OK || got.stdout != "ready\n" {
		t.Errorf("with a rate: %+v", got)
	}
	ping(exit.OK, `{"status":"ready","conditions":[{`, "--json")
	p.stop(syscall.SIGTERM)
	ping(exit.Unavailable, "tasard ping: ")
}

// TestPing_NotANode wants an answer of another protocol to be recognised.
func TestPing_NotANode(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	noError(t, err)
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Listener = listener
	other.Start()
	defer other.Close()
	if got := run(t, nil, nil, "ping", "--live", "--admin-socket", socket); got.code != exit.IOError || !strings.Contains(got.stderr, "404 Not Found") {
		t.Errorf("of something else: %+v", got)
	}
}

// askSocket is what the management listener of a node answers.
func askSocket(t *testing.T, data, path string) string {
	t.Helper()
	got, err := newAdminClient(filepath.Join(data, admin.SocketName)).do(http.MethodGet, "http://tasard"+path, "", nil)
	noError(t, err)
	return got.body
}

// TestMetrics_Listen serves them over TCP where that is asked for, from the first moment, and stops with the node.
func TestMetrics_Listen(t *testing.T) {
	p := startNode(t, t.TempDir(), "--metrics-listen", "127.0.0.1:0")
	_, at, found := strings.Cut(p.Await("metrics are at "), "metrics are at ")
	if !found {
		t.Fatal(p.Output())
	}
	base := strings.TrimSuffix(strings.Trim(at, `"`), admin.MetricsPath)
	p.mustGet("/livez")
	exposed := &program{URL: base, t: t}
	text := exposed.mustGet(admin.MetricsPath)
	for _, line := range []string{
		`tasard_http_requests_total{method="GET",route="/livez",status="200"} 1`, `tasard_accounts 0`, `tasard_readiness{status="unavailable"} 1`, `tasard_log_last_record 0`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if status, _ := exposed.ask(http.MethodGet, "/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz without rates: %d", status)
	}
	if status, _ := exposed.ask(http.MethodGet, "/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("profiles: %d", status)
	}
	if strings.Contains(p.Output(), "reaches this address") {
		t.Error("a warning about an address of this machine only")
	}
	p.signal(syscall.SIGTERM)
	if _, err := net.Dial("tcp", strings.TrimPrefix(base, "http://")); err == nil {
		t.Error("the listener outlives the node")
	}
}

// TestAccessLog wants a line of JSON for each answer, with the caller's request id, and without path or query.
func TestAccessLog(t *testing.T) {
	for which, wanted := range map[string][]string{"all": {"200", "404", "400"}, "off": nil} {
		t.Run(which, func(t *testing.T) {
			p := startNode(t, t.TempDir(), "--access-log", which)
			ids := map[string]string{}
			for _, path := range []string{"/livez?secret=1", "/secret/path", "/v1/currencies?secret=1"} {
				status, headers := p.ask(http.MethodGet, path)
				ids[headers.Get("X-Request-Id")] = http.StatusText(status)
			}
			p.signal(syscall.SIGTERM)
			var got []string
			for line := range strings.Lines(p.Output()) {
				if !strings.HasPrefix(line, "{") {
					continue
				}
				var access struct {
					Time, Level, Msg, RequestID, Method, Route, Network string
					Status, Bytes                                       int
					Micros                                              int64
					Keyed                                               bool
				}
				decoder := json.NewDecoder(strings.NewReader(line))
				decoder.DisallowUnknownFields()
				if err := decoder.Decode(&access); err != nil || strings.Contains(line, "secret") || strings.Contains(line, "127.0.0.1") {
					t.Errorf("%v: %s", err, line)
				}
				if ids[access.RequestID] != http.StatusText(access.Status) || access.Msg != "access" || access.Network != "127.0.0.0/24" || access.Bytes == 0 ||
					access.Micros > 5e6 || access.Method != "GET" || access.Keyed {
					t.Errorf("%s, the answers had the ids %v", line, ids)
				}
				got = append(got, access.Route+" "+http.StatusText(access.Status))
			}
			var want []string
			for _, status := range wanted {
				want = append(want, map[string]string{"200": "/livez OK", "404": "none Not Found", "400": "/v1/currencies Bad Request"}[status])
			}
			if !slices.Equal(got, want) {
				t.Errorf("warned of %q, want %q:\n%s", got, want, p.Output())
			}
		})
	}
}

// doctorReport is what doctor --json prints.
type doctorReport struct {
	Worst    string
	Findings []doctorFinding
}

type doctorFinding struct{ Level, Check, Message, Advice string }

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
	i := slices.IndexFunc(r.Findings, func(f doctorFinding) bool { return f.Check == check })
	if i < 0 {
		t.Fatalf("nothing about %s in %+v", check, r.Findings)
	}
	return r.Findings[i]
}

// TestDoctor_BeforeTheFirstStart wants a machine without a node to be looked at, and nothing to be left there.
func TestDoctor_BeforeTheFirstStart(t *testing.T) {
	data := t.TempDir() + "/data"
	report, got := runDoctor(t, "--data", data, "--listen", "127.0.0.1:0")
	for check, level := range map[string]string{
		"settings": "OK", "data": "OK", "log": "OK", "disk": "OK", "mail": "WARN", "sources": "WARN",
	} {
		if f := report.of(t, check); f.Level != level {
			t.Errorf("%+v, want %s", f, level)
		}
	}
	if report.Worst != "WARN" || got.code != exit.OK {
		t.Errorf("worst %s, exit code %d", report.Worst, got.code)
	}
	if !strings.Contains(got.stdout, "not tried (--network)") || !strings.Contains(got.stdout, "www.bancentral.gov.do:443") {
		t.Errorf("which hosts would be asked: %s", got.stdout)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the data directory was made")
	}
}

// TestDoctor_FindsWhatIsWrong wants each planted fault in a line of its own, and exit code 1.
func TestDoctor_FindsWhatIsWrong(t *testing.T) {
	data := importedData(t, observation(1, "59", "60"))
	noError(t, os.Chmod(data, 0o777))
	report, got := runDoctor(t, "--data", data, "--smtp-tls", "off",
		"--smtp-addr", "127.0.0.1:1", "--mail-from", "a@example.com", "--catalogue", data+"/none.json")
	for check, want := range map[string]doctorFinding{
		"settings": {Level: "FAIL", Message: "--catalogue: "}, "data": {Level: "FAIL", Message: "every user can write"},
		"mail": {Level: "FAIL", Message: "127.0.0.1:1 accepts no e-mail: at connect"}, "log": {Level: "OK", Message: "valid"},
	} {
		if f := report.of(t, check); f.Level != want.Level || !strings.Contains(f.Message, want.Message) {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
	if got.code != exit.CheckFailed || report.Worst != "FAIL" {
		t.Errorf("exit code %d, worst %s", got.code, report.Worst)
	}
	oneLine(t, got.stderr, "FAIL")
	text := run(t, nil, nil, "doctor", "--data", data).stdout
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if !strings.HasPrefix(lines[0], "1 fault (data) and ") || !strings.Contains(lines[0], " warnings (mail, sources") || !strings.HasPrefix(lines[2], "FAIL") {
		t.Errorf("for people:\n%s", text)
	}
}

// TestDoctor_ForeignFiles wants a file of another user in the data directory, as sudo tasard import leaves it, to be
// reported with the command that repairs it.
func TestDoctor_ForeignFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NEEDS root: only root can make a file of another user")
	}
	data := importedData(t, observation(1, "59", "60"))
	snapshots, err := filepath.Glob(data + "/snapshot-*")
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("%v, %v", snapshots, err)
	}
	noError(t, os.Chown(snapshots[0], 65534, 65534))
	report, _ := runDoctor(t, "--data", data)
	if f := report.of(t, "data"); f.Level != "FAIL" || !strings.Contains(f.Message, "belongs to user 65534") || !strings.Contains(f.Advice, "chown") {
		t.Errorf("%+v", f)
	}
}

// TestDoctor_BesideANode wants a running node to be recognised and not disturbed, and its mail server to be tried
// without an e-mail.
func TestDoctor_BesideANode(t *testing.T) {
	t.Parallel()
	box := newMailServer(t)
	data := t.TempDir()
	p := startNode(t, data)
	report, _ := runDoctor(t, append(box.args(), "--data", data)...)
	for check, want := range map[string]string{
		"log": "a running node uses it", "mail": "login as " + mailUser,
	} {
		if f := report.of(t, check); f.Level != "OK" || !strings.Contains(f.Message, want) {
			t.Errorf("%+v, want %q", f, want)
		}
	}
	p.mustGet("/v1/institutions")
	box.mu.Lock()
	defer box.mu.Unlock()
	if len(box.emails) > 0 {
		t.Error("an e-mail was sent")
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

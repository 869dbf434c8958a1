package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tasard/tasard/cmd/internal/exit"
)

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
	for _, f := range r.Findings {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("nothing about %s in %+v", check, r.Findings)
	return doctorFinding{}
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
	if box.Arrived() > 0 {
		t.Error("an e-mail was sent")
	}
	p.mustGet("/v1/institutions")
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

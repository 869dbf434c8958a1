package main

import (
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// startDemoWith begins a demo whose temporary files are the test's.
func startDemoWith(t *testing.T, args ...string) *program {
	t.Helper()
	return startWith(t, "now", []string{"TMPDIR=" + t.TempDir(), fewDays}, args...)
}

// fewDays of history are made up much sooner than a year, which TestDemo_LinesToTry has.
const fewDays = "TASARD_DAYS=20"

// TestDemo_LinesToTry does what the demo tells people to try. The variable that names the directory of a node does not name the demo's.
func TestDemo_LinesToTry(t *testing.T) {
	t.Parallel()
	temp, nodes := t.TempDir(), t.TempDir()
	p := startWith(t, "now", []string{"TMPDIR=" + temp, "TASARD_DATA=" + nodes}, "demo", "--listen", "127.0.0.1:0", "--step", "1s").listening()
	p.await("Ctrl-C stops it.")
	t.Log(p.output())
	commands := regexp.MustCompile(`curl '(http://[^']+)'`).FindAllStringSubmatch(p.output(), -1)
	if len(commands) != 3 {
		t.Fatalf("%d lines to try in\n%s", len(commands), p.output())
	}
	for _, command := range commands {
		path, ours := strings.CutPrefix(command[1], p.url)
		if !ours {
			t.Errorf("%s is not where the demo listens", command[1])
			continue
		}
		if body := p.mustGet(path); strings.Contains(body, `"data":[]`) || strings.Contains(path, "best") && !strings.Contains(body, "Demo") {
			t.Errorf("GET %s: %s", path, body)
		}
	}
	tryAccount(t, p)
	if code := p.signal(os.Interrupt); code != exitDone {
		t.Errorf("exit code %d:\n%s", code, p.output())
	}
	leavesNothing(t, temp)
	leavesNothing(t, nodes)
}

// TestDemo_CallsItselfAsItWasCalled wants the line to try to work where the program is not in the PATH, as after make run.
func TestDemo_CallsItselfAsItWasCalled(t *testing.T) {
	for name, want := range map[string]string{"./tasard": "./tasard", "/opt/tasard-1.0/tasard": "/opt/tasard-1.0/tasard", "": "tasard", "/tmp/a b;c": "tasard"} {
		lines := tryLines((&process{name: name}).called(), "http://127.0.0.1:8080", "/tmp/demo/admin.sock")
		if !strings.Contains(lines, "\n  "+want+" sources list --admin-socket /tmp/demo/admin.sock\n") {
			t.Errorf("called as %q:\n%s", name, lines)
		}
	}
}

// tryAccount does what the demo tells about keys: the code is printed.
func tryAccount(t *testing.T, p *program) {
	t.Helper()
	body, path := "", ""
	if hint := regexp.MustCompile(`curl -H 'Content-Type: application/json' -d '(.+)' (http://\S+)`).FindStringSubmatch(p.output()); hint != nil {
		body, path = hint[1], strings.TrimPrefix(hint[2], p.url)
	}
	anyone := caller{t: t, node: p}
	anyone.must("POST", path, body, http.StatusAccepted, "")
	code := regexp.MustCompile(`code=(\d{8})`).FindStringSubmatch(p.await("mail to=ana@example.com"))
	session := anyone.must("POST", sessionsPath, `{"email":"ana@example.com","code":"`+code[1]+`"}`, http.StatusOK, "")
	key, _ := anyone.with(session.field(t, "token")).newKey("first")
	if !strings.HasPrefix(key.token, engine.KeyPrefixTest) {
		t.Error("the key is none of the test environment")
	}
	if got := key.must("GET", "/v1/rates?limit=1", "", http.StatusOK, ""); got.header.Get("RateLimit") != "" {
		t.Errorf("the demo has limits: %v", got.header)
	}
}

// TestDemo_WithLimits wants the demo to hold callers to the quotas when asked to.
func TestDemo_WithLimits(t *testing.T) {
	t.Parallel()
	p := startDemoWith(t, "demo", "--listen", "127.0.0.1:0", "--limits", "on").listening()
	p.await("Ctrl-C stops it.")
	if got := (caller{t: t, node: p}).must("GET", countedPath, "", http.StatusOK, "").left(t, "minute"); got != 59 {
		t.Errorf("%d left of the minute", got)
	}
}

// TestDemo_Moves wants new rates with each step.
func TestDemo_Moves(t *testing.T) {
	t.Parallel()
	p := startDemoWith(t, "demo", "--listen", "127.0.0.1:0", "--step", "1s", "--log-format", "text", "--log-level", "info").listening()
	p.await("Ctrl-C stops it.")
	before := withoutMoment(p.mustGet("/v1/rates?limit=200"))
	p.await("the market has moved")
	for range 1000 {
		if withoutMoment(p.mustGet("/v1/rates?limit=200")) != before {
			return
		}
	}
	t.Error("nothing has changed")
}

// TestDemo_Breaks wants a source that goes wrong to be told, and its last good rates to stay.
func TestDemo_Breaks(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := startDemoWith(t, "demo", "--listen", "127.0.0.1:0", "--data", data, "--break", "bhd-site=zeros", "--break", "demo-infodolar=challenge").listening()
	p.await("sources in 6 shapes are fetched over HTTPS")
	p.await("Ctrl-C stops it.")
	p.await(`"source":"demo-bhd-site","state":"failing"`)
	by := listedSources(t, data)
	if failure := by["demo-infodolar"].Health.Failure; failure == nil || failure.Kind != source.Blocked {
		t.Errorf("a challenge page is %+v", failure)
	}
	if rate := rateOf(t, p, "USD", "bhd"); rate == nil || rate.Buy == "0" || rate.SourceID != "demo-bhd-site" {
		t.Errorf("the last good rate is gone: %+v", rate)
	}
}

func TestDemo_TakesAFreePort(t *testing.T) {
	taken, err := net.Listen("tcp", listenDefault)
	if err == nil {
		defer taken.Close()
	}
	p := startDemoWith(t, "demo").listening()
	p.await(listenDefault + " is taken by another program")
	if strings.HasSuffix(p.url, ":8080") {
		t.Errorf("it listens on %s", p.url)
	}
	got := run(t, nil, nil, "demo", "--listen", listenDefault)
	if got.code != exitBusy {
		t.Errorf("exit code %d when the port was asked for", got.code)
	}
	oneLine(t, got.stderr, listenDefault)
}

// TestDemo_KeepsItsDirectory wants a second run to go on with the first one's data, and a directory of real rates refused.
func TestDemo_KeepsItsDirectory(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for range 2 {
		p := startWith(t, "now", []string{fewDays}, "demo", "--listen", "127.0.0.1:0", "--data", data).listening()
		p.await("Ctrl-C stops it.")
		if code := p.signal(os.Interrupt); code != exitDone {
			t.Fatalf("exit code %d:\n%s", code, p.output())
		}
	}
	refused := run(t, nil, nil, serveArgs(data)...)
	if refused.code != exitBadData {
		t.Errorf("a node on the demo's directory: exit code %d", refused.code)
	}
	if last := "tasard: the data directory holds made-up rates, of demo-"; !strings.Contains(refused.stderr, last) {
		t.Errorf("a node on the demo's directory:\n%s", refused.stderr)
	}
	realData := t.TempDir()
	mustRun(t, "import", "--data", realData, writeFile(t, "o.csv", header+observation(1, "59", "60")))
	got := run(t, nil, nil, "demo", "--listen", "127.0.0.1:0", "--data", realData)
	if got.code != exitBadData {
		t.Errorf("exit code %d", got.code)
	}
	oneLine(t, got.stderr, realData+": holds rates of popular-site")
}

// TestDemo_SaysSoEverywhere wants every source of the market to be called a demo.
func TestDemo_SaysSoEverywhere(t *testing.T) {
	t.Parallel()
	known, err := demoKnown()
	if err != nil {
		t.Fatal(err)
	}
	now := clockFrom(realNow)()
	market := simulated.NewMarket(1)
	refreshes := append(market.History(engine.DateOf(now)-70, engine.DateOf(now)-1), market.Refreshes(now)...)
	for _, refresh := range refreshes {
		if source := known.catalogue.Source(refresh.SourceID); !strings.HasPrefix(source.Name, "Demo, ") {
			t.Fatalf("%s is called %q", refresh.SourceID, source.Name)
		}
	}
}

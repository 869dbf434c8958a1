package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/admin"
)

// osUser returns the operating system's user of the tests.
func osUser(t *testing.T) string {
	t.Helper()
	current, err := user.Current()
	if err != nil {
		t.Skipf("this user has no name: %v", err)
	}
	return current.Username
}

// runAdmin is an admin command that must end well; the arguments come before those that name the node.
func runAdmin(t *testing.T, data string, args ...string) string {
	t.Helper()
	return mustRun(t, append(append([]string{"admin"}, args...), "--data", data)...)
}

// asJSON reads one line of JSON.
func asJSON[T any](t testing.TB, text string) (answer T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return answer
}

// TestAdmin_Accounts wants the operator's changes to take effect with the next request, to survive a restart, and to
// be logged with author and time.
func TestAdmin_Accounts(t *testing.T) {
	t.Parallel()
	data, box := t.TempDir(), newMailServer(t)
	args := limitedArgs(data, box)
	anyone := caller{t: t, node: startReady(t, args...)}
	if got := runAdmin(t, data, "accounts", "list"); got != "There are no accounts yet.\n" {
		t.Errorf("the empty list is %q", got)
	}
	key, keyID := anyone.signIn(box, "ana@example.com").newKey("server one")
	anyone.signIn(box, "luis@example.org")
	key.must("GET", countedPath, "", http.StatusOK, "")

	table := runAdmin(t, data, "accounts", "list")
	contains(t, table, "ACCOUNT  E-MAIL", "1        a…@….com", "1 of 1,000", "2        l…@….org", "good")
	var first admin.ListedAccount
	for line := range strings.Lines(runAdmin(t, data, "accounts", "list", "--json")) {
		if listed := asJSON[admin.ListedAccount](t, line); listed.ID == 1 {
			first = listed
		}
	}
	if first.ActiveKeys != 1 || first.SpentToday != 1 || first.Limits != (admin.Limits{Day: 1000, Minute: 60, Own: false}) || first.Suspended {
		t.Errorf("listed as %+v", first)
	}
	shown := runAdmin(t, data, "accounts", "show", "ana@example.com")
	contains(t, shown, "account    1\n", "e-mail     a…@….com\n", "state      good\n", "day        999 left", keyID, "server one", "active")

	runAdmin(t, data, "accounts", "suspend", "1", "--reason", "resells access", "--by", "Ana Gil")
	key.must("GET", usagePath, "", http.StatusUnauthorized, "account_suspended")
	runAdmin(t, data, "accounts", "restore", "ana@example.com")
	runAdmin(t, data, "accounts", "limit", "1", "--day", "5", "--by", "Ana Gil")
	limited := asJSON[admin.Account](t, runAdmin(t, data, "accounts", "limit", "1", "--minute", "7", "--json"))
	if limited.Limits != (admin.Limits{Day: 5, Minute: 7, Own: true}) || limited.Day.Remaining != 4 {
		t.Errorf("limited to %+v", limited)
	}
	if got := key.must("GET", countedPath, "", http.StatusOK, ""); got.left(t, "day") != 3 || got.header.Get("X-RateLimit-Limit") != "5" {
		t.Errorf("headers after the change: %v", got.header)
	}
	key.node.signal(os.Kill)
	key.node = startReady(t, args...)
	if got := asJSON[admin.Account](t, runAdmin(t, data, "accounts", "show", "1", "--json")); got.Limits != limited.Limits || !got.SuspendedAt.IsZero() {
		t.Errorf("after a kill %+v", got)
	}
	runAdmin(t, data, "accounts", "limit", "1", "--day", "0", "--minute", "0")
	if got := asJSON[admin.Account](t, runAdmin(t, data, "accounts", "show", "1", "--json")); got.Limits != (admin.Limits{Day: 1000, Minute: 60, Own: false}) {
		t.Errorf("back at the node's limits: %+v", got)
	}
	key.node.signal(syscall.SIGTERM)
	wantInLog(t, data)
}

// wantInLog wants each change of TestAdmin_Accounts in the log with its author and its instant.
func wantInLog(t *testing.T, data string) {
	t.Helper()
	me := osUser(t)
	named := "Ana Gil (" + me + ")"
	for event, want := range map[string][]string{"suspended": {named}, "restored": {me}, "quotaSet": {named, me, me}} {
		if by := byOf(t, data, event); !slices.Equal(by, want) {
			t.Errorf("%s by %q, want %q", event, by, want)
		}
	}
}

// TestGolden_Refusals runs each command of the golden file against a running node with the data directory DIR.
func TestGolden_Refusals(t *testing.T) {
	data := t.TempDir()
	startNode(t, data)
	var text strings.Builder
	for one := range strings.SplitSeq(strings.TrimSpace(readFile(t, filepath.Join(goldenDir, "refusals.txt"))), "\n\n") {
		command, _, _ := strings.Cut(strings.TrimPrefix(one, "$ "), "\n")
		got := run(t, nil, nil, commandIn(data, command)[1:]...)
		if got.code == exit.OK || got.stderr == "" {
			t.Errorf("%s: exit code %d, %q; want a failure and its reason", command, got.code, got.stderr)
		}
		fmt.Fprintf(&text, "$ %s\n%sexit code %d\n\n", command, strings.ReplaceAll(got.stderr, data, "DIR"), got.code)
	}
	// The node's clock runs: on a slow machine it is seconds later.
	later := regexp.MustCompile(`before 2026-07-14T15:0\d:\d\dZ`).ReplaceAllString(strings.TrimSuffix(text.String(), "\n"), "before 2026-07-14T15:00:00Z")
	golden(t, "refusals.txt", later)
}

// TestAdmin_Socket wants a socket for the node's own user, removed at the end; one of a dead node is replaced, one of
// a live node is left alone.
func TestAdmin_Socket(t *testing.T) {
	t.Parallel()
	data, socket := t.TempDir(), t.TempDir()+"/node.sock"
	args := serveArgs(data, "--admin-socket", socket)
	first := startReady(t, args...)
	if info, err := os.Stat(socket); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Fatalf("the socket is %v, %v", info.Mode(), err)
	}
	run(t, nil, nil, "serve", "--data", t.TempDir()+"/data", "--listen", "127.0.0.1:0", "--admin-socket", socket, "--log-format", "text", "--log-level", "warn").fails(t, exit.Busy, socket+": another node uses it")
	mustRun(t, "admin", "keys-required", "--show", "--admin-socket", socket)
	first.signal(os.Kill)
	if _, err := os.Stat(socket); err != nil {
		t.Fatalf("a killed node leaves no socket: %v", err)
	}
	second := startReady(t, args...)
	mustRun(t, "admin", "keys-required", "--show", "--admin-socket", socket)
	second.stop(syscall.SIGTERM)
	if _, err := os.Stat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// rateOf is the published rate of a quote, nil when there is none.
func rateOf(t *testing.T, p *program, currency, institution string) *publishedRate {
	t.Helper()
	page := asJSON[struct{ Data []publishedRate }](t, p.mustGet("/v1/rates?currency="+currency+"&institution="+institution))
	if len(page.Data) == 0 {
		return nil
	}
	return &page.Data[0]
}

// publishedRate is what the tests look at in a rate.
type publishedRate struct {
	Buy, Sell, SourceID, ExpiresAt string
	LastCheckedAt                  time.Time
	Manual, Stale                  bool
}

// byOf are the authors of all events of a kind in the log, each of which is of this hour. Refreshes have other times.
func byOf(t *testing.T, data, event string) []string {
	t.Helper()
	var by []string
	for line := range strings.Lines(mustRun(t, "log", "dump", "--data", data)) {
		record := asJSON[struct {
			Event struct{ Event, By, At string }
		}](t, line).Event
		if record.Event != event {
			continue
		}
		by = append(by, record.By)
		if event != "refreshed" && !strings.HasPrefix(record.At, "2026-06-30T15:") {
			t.Errorf("%s was at %q", event, record.At)
		}
	}
	return by
}

// heldNode is a node whose quarantine holds a tenfold value, USD/1, and a zero, USD/2.
func heldNode(t *testing.T, data string) *program {
	t.Helper()
	return startImported(t, serveArgs(data), observation(1, "59", "60"), observation(2, "65", "66"), observation(3, "0", "60"))
}

// TestI3_QuarantineCommands wants quarantined values to be listed, released and rejected by an operator, with the
// name in the log, and values that are not rates never to be released.
func TestI3_QuarantineCommands(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := heldNode(t, data)
	table := runAdmin(t, data, "quarantine", "list")
	contains(t, table, "NUMBER  WHEN", "USD/1   2026-06-30T14:02:00Z  popular-site  popular      unspecified  commercial  65   66", "jump", "USD/2", "zero")
	if got := runAdmin(t, data, "quarantine", "list", "--currency", "EUR"); got != "The quarantine is empty.\n" {
		t.Errorf("of EUR: %q", got)
	}
	if got := runAdmin(t, data, "quarantine", "list", "--source", "infodolar"); got != "The quarantine is empty.\n" {
		t.Errorf("of another source: %q", got)
	}
	whole := strings.Split(runAdmin(t, data, "quarantine", "list", "--json", "--source", "popular-site"), "\n")
	if one := asJSON[admin.QuarantineEntry](t, whole[0]); one.Number != "USD/1" || one.Reason != engine.Jump || one.Buy != "65" || one.Channel != engine.Unspecified {
		t.Errorf("as JSON %+v", one)
	}

	run(t, nil, nil, "admin", "quarantine", "release", "USD/2", "--data", data).fails(t, exit.Usage, "number 2 of the quarantine can't be released")
	if rate := rateOf(t, p, "USD", "popular"); rate.Buy != "59" {
		t.Errorf("before the release %+v", rate)
	}
	released := runAdmin(t, data, "quarantine", "release", "USD/1", "--by", "Ana Gil")
	if !strings.HasPrefix(released, "USD/1 is released by Ana Gil ("+osUser(t)+"): popular:USD:unspecified:commercial, 65 / 66, of popular-site.\nPublished now: 65 / 66") {
		t.Errorf("released: %q", released)
	}
	if rate := rateOf(t, p, "USD", "popular"); rate.Buy != "65" {
		t.Errorf("after the release %+v", rate)
	}
	if rejected := asJSON[admin.QuarantineResult](t, runAdmin(t, data, "quarantine", "reject", "USD/2", "--json")); rejected.Entry.Number != "USD/2" || rejected.By != osUser(t) {
		t.Errorf("rejected %+v", rejected)
	}
	p.signal(os.Kill)
	p = startNode(t, data)
	if got := runAdmin(t, data, "quarantine", "list"); got != "The quarantine is empty.\n" {
		t.Errorf("after a restart: %q", got)
	}
	p.signal(syscall.SIGTERM)
	if by := byOf(t, data, "released"); len(by) != 1 || by[0] != "Ana Gil ("+osUser(t)+")" {
		t.Errorf("released by %q", by)
	}
	if by := byOf(t, data, "rejected"); len(by) != 1 || by[0] != osUser(t) {
		t.Errorf("rejected by %q", by)
	}
}

// TestS11_ManualRates wants a rate that an operator types to win until it is withdrawn, and the collected one back
// then.
func TestS11_ManualRates(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := heldNode(t, data)
	set := runAdmin(t, data, "rates", "set", "popular", "USD", "--buy", "58.10", "--sell", "59.30", "--for", "6h", "--by", "ana")
	if !strings.HasPrefix(set, "popular:USD:unspecified:commercial is set by ana ("+osUser(t)+").\nPublished now: 58.10 / 59.30 of manual, until 2026-06-30T21:") {
		t.Errorf("set: %q", set)
	}
	if rate := rateOf(t, p, "USD", "popular"); rate.Buy != "58.10" || !rate.Manual || rate.SourceID != admin.ManualSource {
		t.Errorf("published %+v", rate)
	}
	runAdmin(t, data, "rates", "set", "vega-real", "USD", "--sell", "60.00")
	if rate := rateOf(t, p, "USD", "vega-real"); rate == nil || rate.Buy != "" || rate.Sell != "60.00" || !strings.HasPrefix(rate.ExpiresAt, "2026-07-01T15:") {
		t.Errorf("one side for 24 hours: %+v", rate)
	}
	p.signal(os.Kill)
	p = startNode(t, data)
	if rate := rateOf(t, p, "USD", "popular"); rate.SourceID != admin.ManualSource {
		t.Errorf("after a kill %+v", rate)
	}
	withdrawn := asJSON[admin.RateChange](t, runAdmin(t, data, "rates", "withdraw", "popular", "USD", "--json", "--by", "ana"))
	if withdrawn.Published == nil || withdrawn.Published.SourceID != "popular-site" || withdrawn.Published.Buy != "59" {
		t.Errorf("withdrawn: %+v", withdrawn)
	}
	if got := runAdmin(t, data, "rates", "withdraw", "vega-real", "USD"); !strings.HasSuffix(got, "Nothing is published for it now.\n") {
		t.Errorf("withdrawn: %q", got)
	}
	p.signal(syscall.SIGTERM)
	if by := byOf(t, data, "withdrawn"); len(by) != 2 || by[0] != "ana ("+osUser(t)+")" {
		t.Errorf("withdrawn by %q", by)
	}
	if by := byOf(t, data, "refreshed"); !slices.Contains(by, "ana ("+osUser(t)+")") {
		t.Errorf("set by %q", by)
	}
}

// TestI3_ManualRateIsHeld wants the rules to hold for operators too, the answer to say how to go on, and that to work.
func TestI3_ManualRateIsHeld(t *testing.T) {
	data := t.TempDir()
	p := heldNode(t, data)
	got := run(t, nil, nil, "admin", "rates", "set", "popular", "USD", "--buy", "5.81", "--sell", "5.93", "--data", data)
	if got.code != exit.Rejected || !strings.HasPrefix(got.stdout, "Published now: 59 / 60 of popular-site") {
		t.Errorf("exit code %d, %q", got.code, got.stdout)
	}
	oneLine(t, got.stderr, "popular:USD:unspecified:commercial is quarantined as USD/3: out_of_band: ",
		"tasard admin quarantine release USD/3 --data "+data)
	runAdmin(t, data, "quarantine", "release", "USD/3")
	if rate := rateOf(t, p, "USD", "popular"); rate.Buy != "5.81" || !rate.Manual {
		t.Errorf("after the release %+v", rate)
	}
}

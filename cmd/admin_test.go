package cmd

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/httpapi/admin"
)

// osUser is who runs the tests, as the operating system knows it.
func osUser(t *testing.T) string {
	t.Helper()
	current, err := user.Current()
	if err != nil {
		t.Skipf("this user has no name: %v", err)
	}
	return current.Username
}

// operate is an admin command that must end well; the arguments come before those that name the node.
func operate(t *testing.T, data string, args ...string) string {
	t.Helper()
	return mustRun(t, append(append([]string{"admin"}, args...), "--data", data)...)
}

// asJSON reads one line of JSON.
func asJSON[T any](t *testing.T, text string) (answer T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return answer
}

// TestAdmin_Accounts wants the operator's changes to be in force for the next request and after a restart, and in the log
// with who and when.
func TestAdmin_Accounts(t *testing.T) {
	t.Parallel()
	data, box := t.TempDir(), newMailbox(t)
	args := limitedArgs(data, box)
	anyone := startLimited(t, args)
	if got := operate(t, data, "accounts", "list"); got != "There are no accounts yet.\n" {
		t.Errorf("the empty list is %q", got)
	}
	key, keyID := anyone.signIn(box, "ana@example.com").newKey("server one")
	anyone.signIn(box, "luis@example.org")
	key.must("GET", countedPath, "", http.StatusOK, "")

	table := operate(t, data, "accounts", "list")
	for _, part := range []string{"ACCOUNT  E-MAIL", "1        a…@….com", "1 of 1,000", "2        l…@….org", "good"} {
		if !strings.Contains(table, part) {
			t.Errorf("no %q in\n%s", part, table)
		}
	}
	var first admin.ListedAccount
	for line := range strings.Lines(operate(t, data, "accounts", "list", "--json")) {
		if listed := asJSON[admin.ListedAccount](t, line); listed.ID == 1 {
			first = listed
		}
	}
	if first.ActiveKeys != 1 || first.SpentToday != 1 || first.Limits != (admin.Limits{Day: 1000, Minute: 60, Own: false}) || first.Suspended {
		t.Errorf("listed as %+v", first)
	}
	shown := operate(t, data, "accounts", "show", "ana@example.com")
	for _, part := range []string{"account    1\n", "e-mail     a…@….com\n", "state      good\n", "day        999 left", keyID, "server one", "active"} {
		if !strings.Contains(shown, part) {
			t.Errorf("no %q in\n%s", part, shown)
		}
	}

	operate(t, data, "accounts", "suspend", "1", "--reason", "resells access", "--by", "Ana Gil")
	key.must("GET", usagePath, "", http.StatusUnauthorized, "account_suspended")
	operate(t, data, "accounts", "restore", "ana@example.com")
	operate(t, data, "accounts", "limit", "1", "--day", "5", "--by", "Ana Gil")
	limited := asJSON[admin.Account](t, operate(t, data, "accounts", "limit", "1", "--minute", "7", "--json"))
	if limited.Limits != (admin.Limits{Day: 5, Minute: 7, Own: true}) || limited.Day.Remaining != 4 {
		t.Errorf("limited to %+v", limited)
	}
	if got := key.must("GET", countedPath, "", http.StatusOK, ""); got.left(t, "day") != 3 || got.header.Get("X-RateLimit-Limit") != "5" {
		t.Errorf("headers after the change: %v", got.header)
	}
	key.node.signal(os.Kill)
	key.node = startLimited(t, args).node
	if got := asJSON[admin.Account](t, operate(t, data, "accounts", "show", "1", "--json")); got.Limits != limited.Limits || !got.SuspendedAt.IsZero() {
		t.Errorf("after a kill %+v", got)
	}
	operate(t, data, "accounts", "limit", "1", "--day", "0", "--minute", "0")
	if got := asJSON[admin.Account](t, operate(t, data, "accounts", "show", "1", "--json")); got.Limits != (admin.Limits{Day: 1000, Minute: 60, Own: false}) {
		t.Errorf("back at the node's limits: %+v", got)
	}
	key.node.signal(syscall.SIGTERM)
	wantInLog(t, data)
}

// wantInLog wants each change of TestAdmin_Accounts in the log with its author and its instant.
func wantInLog(t *testing.T, data string) {
	t.Helper()
	by := map[string][]string{}
	for line := range strings.Lines(mustRun(t, "log", "dump", "--data", data)) {
		record := asJSON[struct {
			Event struct{ Event, By, At string }
		}](t, line).Event
		if record.By != "" && record.By != "owner" {
			by[record.Event] = append(by[record.Event], record.By)
			if !strings.HasPrefix(record.At, "2026-06-30T15:") {
				t.Errorf("%s was at %q", record.Event, record.At)
			}
		}
	}
	me := osUser(t)
	named := "Ana Gil (" + me + ")"
	for event, want := range map[string][]string{"suspended": {named}, "restored": {me}, "allowanceSet": {named, me, me}} {
		if !slices.Equal(by[event], want) {
			t.Errorf("%s by %q, want %q", event, by[event], want)
		}
	}
}

// TestAdmin_Refusals wants one helpful line and the right code for what cannot be done.
func TestAdmin_Refusals(t *testing.T) {
	data := t.TempDir()
	startNode(t, data)
	for args, want := range map[string]string{
		"accounts show 9":                         "there is no account",
		"accounts show ana@example.com":           "no account has this e-mail address",
		"accounts show ana":                       `"ana" is neither the number of an account nor an e-mail address`,
		"accounts suspend 9 --reason x":           "there is no account",
		"accounts restore 9":                      "there is no account",
		"accounts limit 9 --day 5":                "there is no account",
		"keys-required --withdraw":                "no announcement is pending",
		"keys-required --at 2026-07-14T14:59:59Z": "the notice is 14 days",

		"quarantine release USD/9":                                                 "the quarantine of USD has no number 9",
		"quarantine reject ABC/9":                                                  `there is no currency "ABC"`,
		"quarantine list --currency ABC":                                           `there is no currency "ABC"`,
		"rates set poplar USD --buy 58":                                            `no institution "poplar"; GET /v1/institutions lists them`,
		"rates set popular ABC --buy 58":                                           `no currency "ABC"`,
		"rates set popular USD --buy 60 --sell 59":                                 "is above sell",
		"rates set popular USD --buy 60 --expires 2026-06-30T14:00:00Z":            "want an instant within",
		"rates set popular USD --buy 60 --expires 2036-06-30T14:00:00Z":            "want an instant within",
		"rates withdraw popular USD":                                               "source manual offers no rate popular:USD:unspecified:commercial",
		"rates withdraw popular USD --channel branch --source popular-site --by x": "source popular-site offers no rate",
	} {
		run(t, nil, nil, append(strings.Fields("admin "+args), "--data", data)...).fails(t, exit.Usage, "the node says: ", want)
	}
}

// TestAdmin_NoNode wants one line that says what to do when nobody answers.
func TestAdmin_NoNode(t *testing.T) {
	data := t.TempDir()
	run(t, nil, nil, "admin", "accounts", "list", "--data", data).fails(t, exit.Unavailable, "no node is running behind "+data+"/admin.sock", "tasard serve --data "+data)
	p := startNode(t, data)
	p.signal(os.Kill)
	run(t, []string{"TASARD_ADMIN_SOCKET=" + data + "/admin.sock"}, nil, "admin", "accounts", "list").fails(t, exit.Unavailable, "no node is running behind "+data+"/admin.sock")
}

// TestAdmin_Socket wants a socket for the node's own user, removed at the end; one of a dead node is replaced, one of a live
// node is left alone.
func TestAdmin_Socket(t *testing.T) {
	t.Parallel()
	data, socket := t.TempDir(), t.TempDir()+"/node.sock"
	args := serveArgs(data, "--admin-socket", socket)
	first := start(t, realNow, args...).listening()
	first.await("recovered")
	if info, err := os.Stat(socket); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Fatalf("the socket is %v, %v", info.Mode(), err)
	}
	run(t, nil, nil, "serve", "--data", t.TempDir()+"/data", "--listen", "127.0.0.1:0", "--admin-socket", socket, "--log-format", "text").fails(t, exit.Busy, socket+": another node answers there")
	mustRun(t, "admin", "keys-required", "--show", "--admin-socket", socket)
	first.signal(os.Kill)
	if _, err := os.Stat(socket); err != nil {
		t.Fatalf("a killed node leaves no socket: %v", err)
	}
	second := start(t, realNow, args...).listening()
	second.await("recovered")
	mustRun(t, "admin", "keys-required", "--show", "--admin-socket", socket)
	second.stop(syscall.SIGTERM)
	if _, err := os.Stat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestAdmin_BadSockets(t *testing.T) {
	file := writeFile(t, "file", "")
	for path, code := range map[string]int{
		file:                               exit.CannotWrite,
		t.TempDir() + "/none/admin.sock":   exit.CannotWrite,
		"/tmp/" + strings.Repeat("x", 110): exit.BadData,
	} {
		data := t.TempDir() + "/data"
		run(t, nil, nil, "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin-socket", path, "--log-format", "text").fails(t, code, "--admin-socket")
	}
	if readFile(t, file) != "" {
		t.Error("the file was changed")
	}
}

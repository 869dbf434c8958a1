//go:build faults

package cmd

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tasard/tasard/engine/account/secrettest"
)

// canaries are the secrets of a run, by kind, and everything that the node wrote or sent where none of them belongs.
type canaries struct {
	t       *testing.T
	secrets map[string]string
	places  map[string]string
	answers int
}

// found returns where secrets were found.
func (c *canaries) found() (leaks []string) {
	for what, secret := range c.secrets {
		for how, form := range secrettest.Forms(secret) {
			for where, text := range c.places {
				if strings.Contains(text, form) {
					leaks = append(leaks, fmt.Sprintf("the %s is in %s, %s", what, where, how))
				}
			}
		}
	}
	return leaks
}

// keepAnswer keeps an answer that should have no secrets.
func (c *canaries) keepAnswer(where string, got answer, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: %v", where, err)
	}
	c.answers++
	c.keep("answers", fmt.Sprintf("%s: %d %v %s\n", where, got.status, got.header, got.body))
}

const canaryPassword = "canary-smtp-pass-7f3e"

// exerciseAccounts runs the whole life of an account, with correct and incorrect requests.
func exerciseAccounts(t *testing.T, program string) *canaries {
	t.Helper()
	c := &canaries{t: t, secrets: map[string]string{"SMTP password": canaryPassword, "e-mail": "canary.bird.owner@example.com"}, places: map[string]string{}}
	mail, data := newPlainMailServer(t), filepath.Join(t.TempDir(), "data")
	writeDataDir(t, data, 1)
	n := launch(t, nodeCommand{program: program, args: nodeArgs(data, append(mail.args(), "--log-level", "debug")...)}).ready()
	c.signUp(n, mail)
	c.misuse(n)
	c.manage(n)
	n.stop()
	c.keep("log lines", n.Output())
	password := filepath.Join(t.TempDir(), "password")
	noError(t, os.WriteFile(password, []byte(canaryPassword+"\n"), 0o600))
	// A mail server without TLS: the node has a password and must neither send nor log it.
	n = launch(t, nodeCommand{program: program, args: nodeArgs(data,
		"--smtp-addr", mail.Addr, "--smtp-tls", "starttls", "--smtp-user", "canary", "--smtp-password-file", password,
		"--mail-from", "no-reply@tasard.example", "--log-level", "debug")}).ready()
	caller := newHTTPClient("")
	defer caller.close()
	got, err := caller.do(http.MethodPost, n.URL+"/v1/account/codes", "", map[string]string{"email": c.secrets["e-mail"]})
	c.keepAnswer("a code that was never sent", got, err)
	c.misuse(n)
	c.manage(n)
	n.Send(syscall.SIGQUIT) // prints all goroutines, like a crash
	n.AwaitExit()
	n.Expected = true
	c.keep("crash output", n.Output())
	if !strings.Contains(n.Output(), "goroutine ") {
		t.Errorf("SIGQUIT shows no goroutine:\n%s", n.Tail(5))
	}
	for name, text := range readDir(t, data) {
		c.keep("file "+name, string(text))
	}
	dump, err := exec.Command(program, "log", "dump", "--data", data).CombinedOutput()
	if err != nil {
		t.Fatalf("log dump: %v\n%s", err, dump)
	}
	c.keep("log dump", string(dump))
	return c
}

func (c *canaries) keep(where, text string) { c.places[where] += text }

// signUp creates the secrets.
func (c *canaries) signUp(n *nodeProcess, mail *mailServer) {
	t, email := c.t, c.secrets["e-mail"]
	caller := newHTTPClient("")
	defer caller.close()
	code, got, err := mail.askCode(caller, n.URL, email)
	c.keepAnswer("ask a code", got, err)
	_, got, err = openSession(caller, n.URL, email, "00000000")
	c.keepAnswer("a wrong code", got, err)
	token, got, err := openSession(caller, n.URL, email, code)
	if token == "" {
		t.Fatal(got.failure("log in", err))
	}
	key, got, err := createKey(caller, n.URL, token, "canary")
	if err != nil || key.Secret == "" {
		t.Fatal(got.failure("make a key", err))
	}
	c.secrets["code"], c.secrets["session"], c.secrets["key"] = code, token, key.Secret
	_, got, err = openSession(caller, n.URL, email, code)
	c.keepAnswer("a used code", got, err)
	got, err = caller.do(http.MethodGet, n.URL+"/v1/account/keys", token, nil)
	c.keepAnswer("the keys", got, err)
	got, err = caller.do(http.MethodGet, n.URL+"/v1/rates/best?currency=USD&operation=buy", key.Secret, nil)
	c.keepAnswer("a request with the key", got, err)
}

// misuse sends the secrets where they do not belong.
func (c *canaries) misuse(n *nodeProcess) {
	caller := newHTTPClient("")
	defer caller.close()
	for what, secret := range c.secrets {
		for _, path := range []string{"/v1/rates?key=" + url.QueryEscape(secret), "/v1/rates?" + url.QueryEscape(secret) + "=1", "/v1/institutions/" + url.PathEscape(secret)} {
			got, err := caller.do(http.MethodGet, n.URL+path, "", nil)
			if !strings.HasPrefix(path, "/v1/rates?key=") {
				got.body = "" // a name may be repeated to the client that sent it; see goal Q1
			}
			c.keepAnswer(what+" in the URL", got, err)
		}
		got, err := caller.do(http.MethodGet, n.URL+"/v1/account/keys", secret, nil)
		if what != "session" {
			c.keepAnswer(what+" as a session", got, err)
		}
		got, err = caller.do(http.MethodGet, n.URL+"/v1/rates", secret+"x", nil)
		c.keepAnswer(what+" with a typo as a key", got, err)
		got, err = caller.do(http.MethodPost, n.URL+"/v1/account/sessions", "", map[string]string{"email": secret, "code": secret, secret: secret})
		got.body = ""
		c.keepAnswer(what+" in a body", got, err)
	}
}

// manage requests everything that the management socket shows.
func (c *canaries) manage(n *nodeProcess) {
	admin := n.admin()
	defer admin.close()
	for _, path := range []string{
		"/metrics", "/accounts", "/accounts/1", "/accounts/2", "/keys-required", "/quarantine", "/sources", "/readyz",
		"/debug/pprof/heap?debug=1", "/debug/pprof/goroutine?debug=2",
	} {
		got, err := admin.do(http.MethodGet, "http://node"+path, "", nil)
		c.keep("management "+path, got.body)
		if err != nil || got.status != http.StatusOK {
			c.t.Errorf("management %s: %d %v %q", path, got.status, err, got.body)
		}
	}
}

// TestFaultsS5_Canaries searches everything that a node writes and sends for keys, codes, sessions, mail passwords
// and e-mail addresses.
func TestFaultsS5_Canaries(t *testing.T) {
	c := exerciseAccounts(t, builtProgram(t))
	for _, leak := range c.found() {
		t.Error(leak)
	}
	figure(t, "%d secrets in %d forms, looked for in %d places and %d answers: none found", len(c.secrets), len(secrettest.Forms("x")), len(c.places), c.answers)
	if len(c.secrets) != 5 || c.answers == 0 || len(c.places) < 10 {
		t.Errorf("%d secrets, %d answers, %d places", len(c.secrets), c.answers, len(c.places))
	}
	for how, form := range secrettest.Forms(canaryPassword) {
		if planted := (&canaries{secrets: c.secrets, places: map[string]string{"a file": "before " + form + " behind"}}); len(planted.found()) == 0 {
			t.Errorf("control: a secret is not found %s", how)
		}
	}
	// Under attribute names that the log does not mask.
	talks := buildWith(t, "talks", plant{"httpapi/account.go", "token, expires, err := a.config.Accounts.OpenSession(", "a.config.Logger.Info(\"a try\", \"tried\", r.code, \"by\", r.email.String())\n\ttoken, expires, err := a.config.Accounts.OpenSession("})
	leaks := exerciseAccounts(t, talks).found()
	if len(leaks) < 2 {
		t.Errorf("control: a node that logs codes and addresses is not caught: %q", leaks)
	}
	figure(t, "control: a node that logs codes and addresses is caught in %d ways", len(leaks))
}

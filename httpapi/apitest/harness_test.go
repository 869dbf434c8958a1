package apitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"go.uber.org/goleak"

	"github.com/tasard/tasard/httpapi/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _, _, _ TB = (*testing.T)(nil), (*testing.B)(nil), (*testing.F)(nil)

// now is the only way of these tests to the clock: the real one, or that of the bubble.
func now() time.Time {
	return time.Now() //nolint:forbidigo // see above
}

const best = "/v1/rates/best?currency=USD&operation=buy"

func get(t testing.TB, client *http.Client, url string, header ...string) (int, string, http.Header) {
	t.Helper()
	status, body, received, err := tryGet(t.Context(), t, client, url, header...)
	if err != nil {
		t.Fatal(err)
	}
	return status, body, received
}

// tryGet is get for answers that may break off.
func tryGet(ctx context.Context, t testing.TB, client *http.Client, url string, header ...string) (int, string, http.Header, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(request)
	if err != nil {
		return 0, "", nil, err
	}
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), res.Header, errors.Join(err, res.Body.Close())
}

func accountClient(t testing.TB, srv *Server, httpClient *http.Client) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{BaseURL: srv.URL, HTTPClient: httpClient, Retries: client.NoRetries})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// signIn opens a session with the code from the e-mail, and returns its token.
func signIn(t testing.TB, srv *Server, c *client.Client, email string) string {
	t.Helper()
	if _, err := c.RequestCode(t.Context(), email); err != nil {
		t.Fatal(err)
	}
	session, err := c.SignIn(t.Context(), email, srv.Code(email))
	if err != nil {
		t.Fatal(err)
	}
	return session.Token
}

// repeat calls a function in several goroutines until the returned function is called.
func repeat(goroutines int, do func()) (stop func()) {
	ended := make(chan struct{})
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					do()
				}
			}
		})
	}
	return func() {
		close(ended)
		all.Wait()
	}
}

// mustAnswer asks for the best rates with a key or "", and wants a status and an error code or "".
func mustAnswer(t testing.TB, srv *Server, client *http.Client, key string, status int, reason string) http.Header {
	t.Helper()
	var header []string
	if key != "" {
		header = []string{"Authorization", "Bearer " + key}
	}
	got, body, received := get(t, client, srv.URL+best, header...)
	if got != status || reason != "" && errorCode(t, body) != reason {
		t.Errorf("%d, want %d %s: %s", got, status, reason, body)
	}
	return received
}

func rankedIDs(t testing.TB, srv *Server) []string {
	t.Helper()
	_, body, _ := get(t, srv.Client, srv.URL+best)
	return rateIDs(t, body)
}

func rateIDs(t testing.TB, body string) []string {
	t.Helper()
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var found []string
	for _, item := range list.Data {
		found = append(found, item.ID)
	}
	return found
}

func errorCode(t testing.TB, body string) string {
	t.Helper()
	var answer struct{ Error struct{ Code string } }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return answer.Error.Code
}

type fakeTB struct {
	cleanups []func()
	errors   []string
	fatal    bool
}

func (*fakeTB) Helper()             {}
func (*fakeTB) Name() string        { return "probe" }
func (*fakeTB) Logf(string, ...any) {}
func (p *fakeTB) Cleanup(f func())  { p.cleanups = append(p.cleanups, f) }
func (p *fakeTB) Errorf(format string, args ...any) {
	p.errors = append(p.errors, fmt.Sprintf(format, args...))
}

// Fatalf returns, unlike that of a test.
func (p *fakeTB) Fatalf(format string, args ...any) {
	p.fatal = true
	p.Errorf(format, args...)
}

var standardRate = Rate{Institution: "bhd", Currency: "USD", Buy: "58.50", Sell: "59.30"}

// sampleOrWhole returns whole when SWEEP=whole asks for complete sweeps, as make check does, and sample otherwise.
func sampleOrWhole(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

// TestClose_Garbage checks that a closed node keeps nothing in memory: tests hold their nodes until the last of them
// ends.
func TestClose_Garbage(t *testing.T) {
	n, err := Open(Seed("standard"))
	if err != nil {
		t.Fatal(err)
	}
	server := weak.Make(n.instance.server)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	for tries := 0; server.Value() != nil && tries < 10; tries++ {
		runtime.GC()
	}
	if server.Value() != nil {
		t.Error("the server of a closed node is still there")
	}
	runtime.KeepAlive(n)
}

// forbiddenImports are packages that a test of a client should not have to build.
func forbiddenImports() []string {
	return []string{
		"testing", "github.com/spf13", "github.com/BurntSushi", "github.com/wneessen", "github.com/PuerkitoBio", "github.com/xuri",
		"golang.org/x/net/html", "go.etcd.io/raft",
		"github.com/tasard/tasard/collectors", "github.com/tasard/tasard/actors/mail", "github.com/tasard/tasard/bench",
	}
}

// forbiddenIn returns the packages that are forbidden, or below a forbidden one.
func forbiddenIn(packages []string) []string {
	return slices.DeleteFunc(slices.Clone(packages), func(p string) bool {
		return !slices.ContainsFunc(forbiddenImports(), func(h string) bool { return strings.HasPrefix(p+"/", h+"/") })
	})
}

// packagesMax limits how many packages beside the standard library a test with the harness compiles. It is also in
// docs/testing.md.
const packagesMax = 170

func TestDependencies(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "github.com/tasard/tasard/actors") {
		t.Fatalf("go list names %d packages, and not those of the harness", len(packages))
	}
	if found := forbiddenIn(packages); len(found) > 0 {
		t.Errorf("an import of the harness builds %q too", found)
	}
	libraries := slices.DeleteFunc(packages, func(p string) bool { return !strings.Contains(strings.Split(p, "/")[0], ".") })
	if len(libraries) > packagesMax {
		t.Errorf("a test with the harness compiles %d packages beside the standard library, at most %d: which are new?", len(libraries), packagesMax)
	}
	planted := []string{"testing", "github.com/spf13/cobra", "github.com/tasard/tasard/collectors/source", "github.com/PuerkitoBio/goquery"}
	if got := forbiddenIn(append(planted, "net/http")); !slices.Equal(got, planted) {
		t.Errorf("%q, want %q", got, planted)
	}
}

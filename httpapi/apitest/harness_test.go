package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ TB = (*testing.T)(nil)
	_ TB = (*testing.B)(nil)
	_ TB = (*testing.F)(nil)
)

// now is the one door of these tests to the clock: the real one, and in a bubble the bubble's.
func now() time.Time {
	return time.Now() //nolint:forbidigo // see above
}

const best = "/v1/rates/best?currency=USD&operation=buy"

// get asks and reads the whole answer.
func get(t testing.TB, client *http.Client, url string, header ...string) (int, string, http.Header) {
	t.Helper()
	status, body, received, err := try(t, client, url, header...)
	if err != nil {
		t.Fatal(err)
	}
	return status, body, received
}

// try is get for answers that may break off.
func try(t testing.TB, client *http.Client, url string, header ...string) (int, string, http.Header, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
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

// ids are the rates of a list, in its order.
func ids(t testing.TB, body string) []string {
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

// code is error.code of a body.
func code(t testing.TB, body string) string {
	t.Helper()
	var answer struct{ Error struct{ Code string } }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return answer.Error.Code
}

// probe is a TB that remembers what it was told.
type probe struct {
	cleanups []func()
	errors   []string
	fatal    bool
}

// Helper does nothing.
func (*probe) Helper() {}

// Name is its name.
func (*probe) Name() string { return "probe" }

// Logf does nothing.
func (*probe) Logf(string, ...any) {}

// Cleanup keeps what is to be done at the end.
func (p *probe) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

// Errorf keeps the line.
func (p *probe) Errorf(format string, args ...any) {
	p.errors = append(p.errors, fmt.Sprintf(format, args...))
}

// Fatalf keeps the line. It returns, unlike that of a test.
func (p *probe) Fatalf(format string, args ...any) {
	p.fatal = true
	p.Errorf(format, args...)
}

// end is the end of the test.
func (p *probe) end() string {
	for _, f := range p.cleanups {
		f()
	}
	return strings.Join(p.errors, "\n")
}

var standardRate = Rate{Institution: "bhd", Currency: "USD", Buy: "58.50", Sell: "59.30"}

package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// toldHealth tells what a test wants.
type toldHealth []engine.Condition

func (h toldHealth) Conditions() []engine.Condition { return append([]engine.Condition(nil), h...) }

// readiness is the body of /readyz.
type readiness struct {
	Status     string
	Conditions []struct {
		Name, State string
		Since       *time.Time
		Detail      *string
	}
}

func (f *fixture) readiness(t *testing.T) (answer, readiness) {
	t.Helper()
	got := f.get(t, readyPath)
	var body readiness
	if err := json.Unmarshal(got.plain(t), &body); err != nil {
		t.Fatalf("%v: %s", err, got.body)
	}
	return got, body
}

func (r *readiness) state(name string) string {
	for _, c := range r.Conditions {
		if c.Name == name {
			return c.State
		}
	}
	return ""
}

func TestS15_Readiness(t *testing.T) {
	since := fakeNow()
	well := engine.Well("log")
	slow := engine.Condition{Name: "disk", State: "slow", Since: since, Detail: `say "why"`}
	empty := engine.Condition{Name: "data", State: "empty", Down: true}
	for _, test := range []struct {
		told   toldHealth
		want   string
		status int
		first  string
	}{
		{nil, "ready", 200, "server"}, {toldHealth{well}, "ready", 200, "log"},
		{toldHealth{well, slow}, "degraded", 200, "disk"}, {toldHealth{well, slow, empty}, "unavailable", 503, "data"},
	} {
		f := newFixture(t, func(c *Config) { c.Health = test.told })
		got, body := f.readiness(t)
		if got.status != test.status || body.Status != test.want || body.Conditions[0].Name != test.first {
			t.Errorf("%d, %+v", got.status, body)
		}
		if retry := got.header.Get("Retry-After"); (retry == readyRetry) != (test.status == 503) {
			t.Errorf("%s: Retry-After %q", test.want, retry)
		}
		if len(body.Conditions) != len(test.told)+3 {
			t.Errorf("%d conditions", len(body.Conditions))
		}
	}
}

func TestS15_HeadersMethodsAndQueries(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Gate = newFakeGate(c.Clock) })
	for _, path := range []string{livePath, liveOtherPath, readyPath} {
		for _, target := range []string{path, path + "?verbose=1&api_key=x"} {
			get, head := f.get(t, target), f.do(t, http.MethodHead, target)
			if get.status != 200 || head.status != 200 || len(head.body) != 0 {
				t.Errorf("%s: %d, HEAD %d with %d bytes", target, get.status, head.status, len(head.body))
			}
			for name := range get.header {
				if strings.Contains(name, "Ratelimit") || strings.Contains(name, "RateLimit") {
					t.Errorf("%s says %s", target, name)
				}
			}
			for name, want := range map[string]string{
				"Cache-Control": noStore, "Content-Type": contentTypeJSON, "X-Content-Type-Options": "nosniff",
				"Content-Security-Policy": contentPolicy, "Referrer-Policy": "no-referrer",
			} {
				if got := get.header.Get(name); got != want {
					t.Errorf("%s: %s is %q, want %q", target, name, got, want)
				}
			}
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch} {
			got := f.do(t, method, path)
			if got.status != 405 || got.header.Get("Allow") != methodsHealth || got.fault(t).Error.Code != string(engine.CodeMethodNotAllowed) {
				t.Errorf("%s %s: %d, Allow %q", method, path, got.status, got.header.Get("Allow"))
			}
		}
		if got := f.get(t, path+"/"); got.status != 404 {
			t.Errorf("%s/: %d", path, got.status)
		}
	}
}

func TestS15_LiveWhateverFails(t *testing.T) {
	f := newFixture(t, func(c *Config) {
		c.Health = toldHealth{{Name: "log", State: "failed", Down: true}}
	})
	f.service.panics = "planted"
	for _, path := range []string{livePath, liveOtherPath} {
		if got := f.get(t, path); got.status != 200 || string(got.body) != liveBody {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

// Requests that are refused for load show at once, and stay for long enough not to flap.
func TestS15_Overloaded(t *testing.T) {
	f := newFixture(t, nil)
	began := f.clock.now()
	f.service.fault = &engine.Error{Code: engine.CodeOverloaded, Message: "planted"}
	if got := f.get(t, "/v1/rates"); got.status != 503 {
		t.Fatalf("status %d", got.status)
	}
	for _, test := range []struct {
		after time.Duration
		want  string
	}{{0, "overloaded"}, {2 * time.Second, "overloaded"}, {4 * time.Second, "ok"}} {
		f.clock.set(began.Add(test.after))
		if _, body := f.readiness(t); body.state("load") != test.want {
			t.Errorf("after %s: %q", test.after, body.state("load"))
		}
	}
}

func TestS15_Draining(t *testing.T) {
	f := newFixture(t, nil)
	f.server.Drain()
	f.server.Drain()
	got, body := f.readiness(t)
	if got.status != 503 || body.Conditions[0].State != "draining" || body.Conditions[0].Since == nil {
		t.Errorf("%d, %+v", got.status, body)
	}
	if got := f.get(t, livePath); got.status != 200 {
		t.Errorf("/livez: %d", got.status)
	}
}

// A shortage of descriptors shows when it is met, and lasts until one is to be had.
func TestS15_Short(t *testing.T) {
	now := fakeNow()
	s := &strain{clock: func() time.Time { return now }}
	l := Patient(&scriptedListener{script: []error{syscall.EMFILE}}, Patience{strain: s, After: func(time.Duration) <-chan time.Time {
		fire := make(chan time.Time, 1)
		fire <- now
		return fire
	}})
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	if got := s.connections().State; got != "short" {
		t.Errorf("%q", got)
	}
	now = now.Add(4 * time.Second)
	if got := s.connections().State; got != "ok" {
		t.Errorf("after four seconds with descriptors to be had: %q", got)
	}
}

func BenchmarkReadyz(b *testing.B) {
	f := newFixture(b, func(c *Config) { c.Health = toldHealth{engine.Well("log"), engine.Well("disk"), engine.Well("clock")} })
	b.ReportAllocs()
	for b.Loop() {
		f.get(b, readyPath)
	}
}

package fetch

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// crowd counts how many requests a site has at the same time, and when each began and ended.
type crowd struct {
	now, most atomic.Int32

	mu    sync.Mutex
	began []time.Time
	ended []time.Time
}

func (c *crowd) serve(out http.ResponseWriter, _ *http.Request) {
	most := c.now.Add(1)
	defer c.now.Add(-1)
	for seen := c.most.Load(); most > seen && !c.most.CompareAndSwap(seen, most); seen = c.most.Load() {
	}
	began := clock()
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	<-timer.C
	_, _ = io.WriteString(out, "58.90")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began, c.ended = append(c.began, began), append(c.ended, clock())
}

// fetchAll lets several sources ask one host at the same time, through the clients in turn.
func fetchAll(t *testing.T, times int, clients ...*Client) {
	t.Helper()
	var all sync.WaitGroup
	for i := range times {
		all.Go(func() {
			d := get(fmt.Sprintf("https://www.Example.do/%d", i))
			d.ID, d.IgnoreRobots = fmt.Sprintf("source-%d", i), true
			if _, err := clients[i%len(clients)].Fetch(t.Context(), d, 0); err != nil {
				t.Errorf("source %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

// TestManners_OneRequestAHost: a host has one request at a time, and a pause between two. Control: two clients have two queues.
func TestManners_OneRequestAHost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *web) {
		site, unruly := &crowd{}, &crowd{}
		w.site("www.Example.do", site.serve)
		fetchAll(t, 20, w.client())
		if most := site.most.Load(); most != 1 {
			t.Errorf("%d requests at the same time, want 1", most)
		}
		for i := 1; i < len(site.began); i++ {
			if gap := site.began[i].Sub(site.ended[i-1]); gap != 500*time.Millisecond {
				t.Errorf("a pause of %v, want 500ms", gap)
			}
		}
		w.site("www.Example.do", unruly.serve)
		fetchAll(t, 20, w.client(noPause), w.client(noPause))
		if most := unruly.most.Load(); most < 2 {
			t.Errorf("control: %d requests at the same time: the count is blind", most)
		}
	})
}

// TestManners_Queue: who can't get his turn within his budget fails alone, and the turn is not lost.
func TestManners_Queue(t *testing.T) {
	inBubble(t, func(t *testing.T, w *web) {
		w.site("example.do", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		c := w.client(func(c *Config) { c.RequestMax = 29 * time.Second })
		d := freeGet("https://example.do/")
		began := clock()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if _, err := c.Fetch(t.Context(), d, 0); failureKind(err) != source.Timeout {
					t.Errorf("got %v, want timeout", err)
				}
			})
		}
		both.Wait()
		if took := clock().Sub(began); took > 30*time.Second {
			t.Errorf("took %v", took)
		}
		w.site("example.do", text("58.90"))
		wantDocument(t, c, d, "58.90")
	})
}

// TestManners_NamesAreBounded: hosts are forgotten when there are too many, but never one that is in use.
func TestManners_NamesAreBounded(t *testing.T) {
	var l lines[int]
	used, err := l.enter(t.Context(), "used")
	if err != nil {
		t.Fatal(err)
	}
	used.value = 7
	for i := range 10 * namesMax {
		line, err := l.enter(t.Context(), fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		l.leave(line)
	}
	if len(l.names) > namesMax || l.names["used"] != used {
		t.Errorf("%d names are kept, at most %d; in use: %v", len(l.names), namesMax, l.names["used"])
	}
}

// fails answers with a status some times, then with the page. It notes when it was asked.
type fails struct {
	times  int
	status int
	header map[string]string
	asked  []time.Time
	posts  int
}

func (f *fails) serve(out http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, clock())
	if r.Method == http.MethodPost {
		f.posts++
	}
	if len(f.asked) > f.times {
		_, _ = io.WriteString(out, "58.90")
		return
	}
	for name, value := range f.header {
		out.Header().Set(name, value)
	}
	out.WriteHeader(f.status)
}

func (f *fails) waits() []time.Duration {
	var waits []time.Duration
	for i := 1; i < len(f.asked); i++ {
		waits = append(waits, f.asked[i].Sub(f.asked[i-1]))
	}
	return waits
}

// TestRetry_Waits: 2 s and 4 s, moved by a quarter at most; Retry-After lengthens them, and ends the tries beyond the budget.
func TestRetry_Waits(t *testing.T) {
	tests := []struct {
		name   string
		site   fails
		random *rand.Rand
		waits  []time.Duration // exact without random
		ok     bool
	}{
		{name: "once", site: fails{times: 1, status: 503}, waits: []time.Duration{2 * time.Second}, ok: true},
		{name: "twice", site: fails{times: 2, status: 500}, waits: []time.Duration{2 * time.Second, 4 * time.Second}, ok: true},
		{name: "three times", site: fails{times: 3, status: 502}, waits: []time.Duration{2 * time.Second, 4 * time.Second}},
		{name: "by chance", site: fails{times: 2, status: 504}, random: rand.New(rand.NewPCG(1, 2)),
			waits: []time.Duration{2 * time.Second, 4 * time.Second}, ok: true},
		{name: "seconds", site: fails{times: 1, status: 429, header: map[string]string{"Retry-After": "7"}},
			waits: []time.Duration{7 * time.Second}, ok: true},
		{name: "shorter than our own", site: fails{times: 1, status: 429, header: map[string]string{"Retry-After": "1"}},
			waits: []time.Duration{2 * time.Second}, ok: true},
		{name: "a date", site: fails{times: 1, status: 503, header: map[string]string{"Retry-After": "Sat, 01 Jan 2000 00:00:09 GMT"}},
			waits: []time.Duration{9 * time.Second}, ok: true},
		{name: "a date in the past", site: fails{times: 1, status: 503, header: map[string]string{"Retry-After": "Fri, 31 Dec 1999 00:00:09 GMT"}},
			waits: []time.Duration{2 * time.Second}, ok: true},
		{name: "longer than the budget", site: fails{times: 1, status: 503, header: map[string]string{"Retry-After": "31"}}},
		{name: "a day", site: fails{times: 1, status: 503, header: map[string]string{"Retry-After": "99999999999999999999"}}},
		{name: "no time at all", site: fails{times: 1, status: 503, header: map[string]string{"Retry-After": "soon"}},
			waits: []time.Duration{2 * time.Second}, ok: true},
	}
	for _, tt := range tests {
		caseInBubble(t, tt.name, func(t *testing.T, w *web) {
			w.site("example.do", tt.site.serve)
			d := free(source.Request{Method: "POST", URL: "https://example.do/", Form: map[string]string{"a": "b"}})
			c := w.client(func(c *Config) { c.Random = tt.random })
			began := clock()
			_, err := c.Fetch(t.Context(), d, 0)
			if (err == nil) != tt.ok || !tt.ok && failureKind(err) != source.HTTPStatus {
				t.Errorf("got %v", err)
			}
			if len(tt.waits) == 0 && clock().Sub(began) > 0 {
				t.Errorf("waited %v for nothing", clock().Sub(began))
			}
			waits := tt.site.waits()
			if tt.random == nil && !slices.Equal(waits, tt.waits) || len(waits) != len(tt.waits) || tt.site.posts != len(waits)+1 {
				t.Errorf("waited %v and posted %d times, want %v", waits, tt.site.posts, tt.waits)
			}
			for i, wait := range waits {
				if away := (wait - tt.waits[i]).Abs(); away > tt.waits[i]/4 || tt.random != nil && away == 0 {
					t.Errorf("waited %v, want about %v", wait, tt.waits[i])
				}
			}
		})
	}
}

// TestRetry_Connection: a host that comes back is asked again.
func TestRetry_Connection(t *testing.T) {
	inBubble(t, func(t *testing.T, w *web) {
		d := freeGet("https://example.do/")
		fetched := make(chan error, 1)
		c := w.client()
		go func() {
			_, err := c.Fetch(t.Context(), d, 0)
			fetched <- err
		}()
		synctest.Wait()
		w.site("example.do", text("58.90"))
		if err := <-fetched; err != nil || len(w.dialed) != 2 {
			t.Errorf("got %v after dialing %q", err, w.dialed)
		}
	})
}

// TestRedirect_Within: to another name of the site, to https, from POST to GET or as POST, with the cookies.
func TestRedirect_Within(t *testing.T) {
	inBubble(t, func(t *testing.T, w *web) {
		w.listen("example.com.do:80", func(out http.ResponseWriter, r *http.Request) {
			http.Redirect(out, r, "https://example.com.do"+r.URL.Path, http.StatusMovedPermanently)
		}, nil)
		w.site("example.com.do", func(out http.ResponseWriter, r *http.Request) {
			status := http.StatusFound
			if r.URL.Path == "/kept" {
				status = http.StatusPermanentRedirect
			}
			out.Header().Set("Set-Cookie", "a=b; domain=example.com.do")
			http.Redirect(out, r, "//WWW.example.com.do:443/rates#top", status)
		})
		w.site("WWW.example.com.do", func(out http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(out, "%s %s %s %s %s", r.Method, r.URL, body, r.Header.Get("Cookie"), r.Header.Get("Content-Type"))
		})
		c := w.client()
		ask := func(method, url string, form map[string]string) *source.Definition {
			return free(source.Request{Method: method, URL: url, Form: form})
		}
		document := wantDocument(t, c, ask("GET", "http://example.com.do/", nil), "GET /rates  a=b ")
		if document.URL != "https://WWW.example.com.do:443/rates" {
			t.Errorf("the document came from %s", document.URL)
		}
		wantDocument(t, c, ask("POST", "https://example.com.do/", map[string]string{"x": "y"}), "GET /rates  a=b ")
		wantDocument(t, c, ask("POST", "https://example.com.do/kept", map[string]string{"x": "y"}),
			"POST /rates x=y a=b application/x-www-form-urlencoded")
	})
}

// TestRedirect_Count: five are followed, six are not, and the seventh address is never asked.
func TestRedirect_Count(t *testing.T) {
	inBubble(t, func(t *testing.T, w *web) {
		asked := 0
		w.site("example.do", func(out http.ResponseWriter, r *http.Request) {
			asked++
			var left int
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &left)
			if left == 0 {
				_, _ = io.WriteString(out, "58.90")
				return
			}
			http.Redirect(out, r, fmt.Sprintf("/%d", left-1), http.StatusFound)
		})
		c := w.client()
		wantDocument(t, c, freeGet("https://example.do/5"), "58.90")
		asked = 0
		wantFailure(t, c, freeGet("https://example.do/6"), source.HTTPStatus, "more than 5")
		if asked != 6 {
			t.Errorf("%d requests, want 6", asked)
		}
	})
}

// TestSite_Steps: where a page may send us.
func TestSite_Steps(t *testing.T) {
	for from, to := range map[string]struct{ allowed, refused []string }{
		"https://www.bank.com.do/":         {[]string{"https://bank.com.do/a", "https://API.bank.com.do./a"}, nil},
		"https://bank.com.do/":             {nil, []string{"https://other.com.do/", "https://bank.com.do.evil.com/", "https://com.do/"}},
		"https://a.blob.core.windows.net/": {nil, []string{"https://b.blob.core.windows.net/"}},
		"http://bank.do/":                  {[]string{"https://bank.do/", "http://www.bank.do/"}, []string{"http://bank.do:443/"}},
		"http://bank.do:443/":              {[]string{"https://bank.do/"}, nil},
		"https://bank.do/": {nil, []string{
			"http://bank.do/", "https://bank.do:8443/a", "https://user@bank.do/", "data:text/html,x", "https:///a",
		}},
		"https://bank.do:8443/": {[]string{"https://bank.do:8443/a"}, []string{"https://www.bank.do:8443/a"}},
		"https://10.0.0.1/":     {[]string{"https://10.0.0.1/a"}, []string{"https://10.9.0.1/a"}},
		"https://[::1]/":        {nil, []string{"https://[::2]/"}},
		"https://localhost/":    {[]string{"https://localhost/a"}, []string{"https://otherhost/a"}},
	} {
		for _, target := range to.allowed {
			if why := refuseStep(address(t, from), address(t, target)); why != "" {
				t.Errorf("%s to %s is refused: %s", from, target, why)
			}
		}
		for _, target := range to.refused {
			if refuseStep(address(t, from), address(t, target)) == "" {
				t.Errorf("%s to %s is allowed", from, target)
			}
		}
	}
}

package fetch

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

type concurrencyCounter struct {
	mu           sync.Mutex
	now, most    int
	began, ended []time.Time
}

func (c *concurrencyCounter) serve(out http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	c.now++
	c.most, c.began = max(c.most, c.now), append(c.began, clock())
	c.mu.Unlock()
	<-time.NewTimer(100 * time.Millisecond).C
	_, _ = io.WriteString(out, "58.90")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.ended = c.now-1, append(c.ended, clock())
}

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

// TestManners_OneRequestAHost: a host has one request at a time, and a pause between two. Control: two clients have
// two queues.
func TestManners_OneRequestAHost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *testNetwork) {
		site, unruly := &concurrencyCounter{}, &concurrencyCounter{}
		w.site("www.Example.do", site.serve)
		fetchAll(t, 20, w.client())
		if most := site.most; most != 1 {
			t.Errorf("%d requests at the same time, want 1", most)
		}
		for i := 1; i < len(site.began); i++ {
			if gap := site.began[i].Sub(site.ended[i-1]); gap != 500*time.Millisecond {
				t.Errorf("a pause of %v, want 500ms", gap)
			}
		}
		w.site("www.Example.do", unruly.serve)
		fetchAll(t, 20, w.client(noPause), w.client(noPause))
		if most := unruly.most; most < 2 {
			t.Errorf("control: %d requests at the same time: the count is blind", most)
		}
	})
}

// TestManners_Queue: a request that can't lock its host in time fails, and the lock is not lost.
func TestManners_Queue(t *testing.T) {
	inBubble(t, func(t *testing.T, w *testNetwork) {
		w.site("example.do", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		c := w.client(func(c *Config) { c.RequestTimeout = 29 * time.Second })
		d := getWithoutRobots("https://example.do/")
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

// failingSite answers with a status some times, then with the page. It notes when it was asked.
type failingSite struct {
	times  int
	status int
	after  string        // Retry-After
	date   time.Duration // Retry-After as a date so far from now, 0 = none
	asked  []time.Time
}

func (f *failingSite) serve(out http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, clock())
	if r.Method != http.MethodPost {
		out.WriteHeader(http.StatusMethodNotAllowed) // a try that is not what was asked for
		return
	}
	if len(f.asked) > f.times {
		_, _ = io.WriteString(out, "58.90")
		return
	}
	if f.date != 0 {
		f.after = clock().Add(f.date).UTC().Format(http.TimeFormat)
	}
	out.Header().Set("Retry-After", f.after)
	out.WriteHeader(f.status)
}

func (f *failingSite) waits() []time.Duration {
	var waits []time.Duration
	for i := 1; i < len(f.asked); i++ {
		waits = append(waits, f.asked[i].Sub(f.asked[i-1]))
	}
	return waits
}

// TestRetry_Waits: 2 s and 4 s; Retry-After lengthens them, and ends the tries beyond the budget.
func TestRetry_Waits(t *testing.T) {
	tests := []struct {
		name  string
		site  failingSite
		waits []time.Duration
		ok    bool
	}{
		{name: "once", site: failingSite{times: 1, status: 503}, waits: []time.Duration{2 * time.Second}, ok: true},
		{name: "twice", site: failingSite{times: 2, status: 500}, waits: []time.Duration{2 * time.Second, 4 * time.Second}, ok: true},
		{name: "three times", site: failingSite{times: 3, status: 502}, waits: []time.Duration{2 * time.Second, 4 * time.Second}},
		{name: "seconds", site: failingSite{times: 1, status: 429, after: "7"}, waits: []time.Duration{7 * time.Second}, ok: true},
		{name: "shorter than our own", site: failingSite{times: 1, status: 429, after: "1"}, waits: []time.Duration{2 * time.Second}, ok: true},
		{name: "a date", site: failingSite{times: 1, status: 503, date: 9 * time.Second}, waits: []time.Duration{9 * time.Second}, ok: true},
		{name: "longer than the budget", site: failingSite{times: 1, status: 503, after: "31"}},
	}
	for _, tt := range tests {
		caseInBubble(t, tt.name, func(t *testing.T, w *testNetwork) {
			w.site("example.do", tt.site.serve)
			d := definitionWithoutRobots(source.Request{Method: "POST", URL: "https://example.do/", Form: map[string]string{"a": "b"}})
			began := clock()
			_, err := w.client().Fetch(t.Context(), d, 0)
			if (err == nil) != tt.ok || !tt.ok && failureKind(err) != source.HTTPStatus {
				t.Errorf("got %v", err)
			}
			if len(tt.waits) == 0 && clock().Sub(began) > 0 {
				t.Errorf("waited %v for nothing", clock().Sub(began))
			}
			if waits := tt.site.waits(); !slices.Equal(waits, tt.waits) {
				t.Errorf("waited %v, want %v", waits, tt.waits)
			}
		})
	}
}

func TestRetry_Connection(t *testing.T) {
	inBubble(t, func(t *testing.T, w *testNetwork) {
		d := getWithoutRobots("https://example.do/")
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
	inBubble(t, func(t *testing.T, w *testNetwork) {
		w.listen("example.com.do:80", func(out http.ResponseWriter, r *http.Request) {
			http.Redirect(out, r, "https://example.com.do"+r.URL.Path, http.StatusMovedPermanently)
		}, nil)
		w.site("example.com.do", func(out http.ResponseWriter, r *http.Request) {
			status := map[string]int{"/": 302, "/kept": 308, "/held": 307}[r.URL.Path]
			out.Header().Set("Set-Cookie", "a=b; domain=example.com.do")
			http.Redirect(out, r, "//WWW.example.com.do:443/rates#top", status)
		})
		w.site("WWW.example.com.do", func(out http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(out, "%s %s %s %s %s", r.Method, r.URL, body, r.Header.Get("Cookie"), r.Header.Get("Content-Type"))
		})
		c := w.client()
		ask := func(method, url string, form map[string]string) *source.Definition {
			return definitionWithoutRobots(source.Request{Method: method, URL: url, Form: form})
		}
		document := wantDocument(t, c, ask("GET", "http://example.com.do/", nil), "GET /rates  a=b ")
		if document.URL != "https://WWW.example.com.do:443/rates" {
			t.Errorf("the document came from %s", document.URL)
		}
		wantDocument(t, c, ask("POST", "https://example.com.do/", map[string]string{"x": "y"}), "GET /rates  a=b ")
		for _, kept := range []string{"https://example.com.do/kept", "https://example.com.do/held"} {
			wantDocument(t, c, ask("POST", kept, map[string]string{"x": "y"}), "POST /rates x=y a=b application/x-www-form-urlencoded")
		}
	})
}

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
			if why := addressProblem(address(t, from), address(t, target)); why != "" {
				t.Errorf("%s to %s is refused: %s", from, target, why)
			}
		}
		for _, target := range to.refused {
			if addressProblem(address(t, from), address(t, target)) == "" {
				t.Errorf("%s to %s is allowed", from, target)
			}
		}
	}
}

func address(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatalf("parse %q: %v", text, err)
	}
	return u
}

// TestRobots_Rules: what a robots.txt says to us (RFC 9309, 2.2).
func TestRobots_Rules(t *testing.T) {
	tests := []struct {
		name, robots, path string
		allowed            bool
	}{
		{"nothing", "", "/", true},
		{"the empty path", "User-agent: *\nDisallow: /", "", false},
		{"an empty rule", "User-agent: *\nDisallow:\n", "/", true},
		{"an empty rule ends the agents", "User-agent: other\nDisallow:\nUser-agent: *\nDisallow: /x\n", "/x", false},
		{"another agent", "User-agent: GPTBot\nDisallow: /\n", "/", true},
		{"ours", "User-agent: *\nDisallow: /\n\nUser-agent: Tasard\nDisallow: /admin\n", "/tasas", true},
		{"ours is empty", "User-agent: *\nDisallow: /\n\nUser-agent: tasard\nDisallow:\n", "/tasas", true},
		{"ours in a shared group", "User-agent: a\nUser-agent: tasard\nDisallow: /tasas\nUser-agent: *\nDisallow: /\n", "/tasas", false},
		{"ours in two groups", "User-agent: tasard\nDisallow: /a\nUser-agent: *\nDisallow: /c\nUser-agent: tasard\nDisallow: /b\n", "/b", false},
		{"only the beginning of our name", "User-agent: tas\nDisallow: /\n", "/", true},
		{"the longer rule", "User-agent: *\nDisallow: /\nAllow: /tasas\n", "/tasas/hoy", true},
		{"a wildcard", "User-agent: *\nDisallow: /*.ashx\n", "/_layouts/15/ObtenerTasas.ashx", false},
		{"the query", "User-agent: *\nDisallow: /*?\n", "/a?b=c", false},
		{"the end", "User-agent: *\nDisallow: /*.pdf$\n", "/a.pdf", false},
		{"not the end", "User-agent: *\nDisallow: /*.pdf$\n", "/a.pdfx", true},
		{"an end without a wildcard", "User-agent: *\nDisallow: /a$\n", "/ab", true},
		{"several wildcards", "User-agent: *\nDisallow: /a*b*c\n", "/a1c2b3c4", false},
		{"wildcards in another order", "User-agent: *\nDisallow: /a*b*c\n", "/a1c2b3", true},
		{"a tie", "User-agent: *\nDisallow: /a\nAllow: /a\n", "/a", true},
		{"a comment", "# no robots\nUser-agent: * # all\nDisallow: /a # not this\n", "/a", false},
		{"CR line ends and a BOM", "\ufeffUser-agent: *\rDisallow: /a\r", "/a", false},
		{"spaces", "  user-AGENT :  *  \n\tDISALLOW :\t/a  \n", "/a", false},
		{"rules before any agent", "Disallow: /\nUser-agent: *\nDisallow: /a\n", "/b", true},
		{"a bad line", "User-agent: *\nCrawl-delay: often\nDisallow: /a\n", "/a", false},
		{"a sitemap between", "User-agent: *\nSitemap: https://a/b\nDisallow: /a\n", "/a", false},
		{"a page of HTML", "<!DOCTYPE html><html><body>No existe: disallow</body></html>", "/", true},
		{"bytes", "\x00\xff\xfe: \x80\nUser-agent: *\nDisallow: /\xf1\x80a\n", "/tasas", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := allows(parseRules([]byte(tt.robots)), address(t, "https://example.do"+tt.path)); got != tt.allowed {
				t.Errorf("%q for %s: allowed %v, want %v", tt.robots, tt.path, got, tt.allowed)
			}
		})
	}
}

// TestD4_Robots: the largest robots.txt that is read, full of patterns, costs little, and forbids no less than it
// says.
func TestD4_Robots(t *testing.T) {
	var rules []pathRule
	wantAllocated(t, 2*allocatedMax, func() { // half of it is garbage by the end
		rules = parseRules([]byte("User-agent: *\n" + strings.Repeat("Disallow: /*a*b*c*d$\n", robotsBytesMax/22) + "Disallow: /secret*\n"))
	})
	if allows(rules, address(t, "https://example.do/secret")) {
		t.Error("a rule after many patterns is lost")
	}
}

// TestRobots_Asked: once a day a host, before anything else, also if the clock is set back; for each redirect;
// ignoreRobots leaves it out.
func TestRobots_Asked(t *testing.T) {
	inBubble(t, func(t *testing.T, w *testNetwork) {
		var asked []string
		rules := "User-agent: *\nDisallow: /secret\n"
		w.site("example.do", func(out http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path)
			switch r.URL.Path {
			case "/robots.txt":
				_, _ = io.WriteString(out, rules)
			case "/moved":
				http.Redirect(out, r, "/secret", http.StatusFound)
			default:
				_, _ = io.WriteString(out, "58.90")
			}
		})
		shift := time.Duration(0)
		c := w.client(func(c *Config) { c.Clock = func() time.Time { return clock().Add(shift) } })
		wantDocument(t, c, get("https://example.do/a"), "58.90")
		wantFailure(t, c, get("https://example.do/moved"), source.Blocked, "robots.txt")
		wantFailure(t, c, get("https://example.do/secret"), source.Blocked, "robots.txt", `"tasard"`, "ignoreRobots")
		wantDocument(t, c, get("https://example.do/b"), "58.90")
		wantDocument(t, c, getWithoutRobots("https://example.do/secret"), "58.90")
		if got := fmt.Sprint(asked); got != "[/robots.txt /a /moved /b /secret]" {
			t.Errorf("asked for %s", got)
		}
		rules, asked = "", nil
		wantFailure(t, c, get("https://example.do/secret"), source.Blocked)
		_ = sleep(t.Context(), robotsAgeMax)
		wantDocument(t, c, get("https://example.do/secret"), "58.90")
		if got := fmt.Sprint(asked); got != "[/robots.txt /secret]" {
			t.Errorf("a day later asked for %s", got)
		}
		rules, shift = "User-agent: *\nDisallow: /secret\n", -time.Hour
		wantFailure(t, c, get("https://example.do/secret"), source.Blocked)
	})
}

// TestRobots_Missing: 4xx and what redirects away allow everything; what can't be had forbids everything, until it
// could be had once.
func TestRobots_Missing(t *testing.T) {
	tests := []struct {
		name   string
		status int // 0 = the connection breaks off
		target string
		kind   source.FailureKind // "" = allowed
	}{
		{"not there", 404, "", ""},
		{"not for us", 401, "", ""},
		{"refused", 403, "", ""},
		{"gone", 410, "", ""},
		{"empty", 204, "", ""},
		{"elsewhere on the site", 302, "/other.txt", source.Blocked},
		{"on another site", 301, "https://elsewhere.do/robots.txt", ""},
		{"in a circle", 302, "/robots.txt", ""},
		{"fails", 500, "", source.HTTPStatus},
		{"not now", 503, "", source.HTTPStatus},
		{"cut off", 0, "", source.Network},
	}
	for _, tt := range tests {
		caseInBubble(t, tt.name, func(t *testing.T, w *testNetwork) {
			times := 0
			answers := func(out http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/other.txt":
					_, _ = io.WriteString(out, "User-agent: tasard\nDisallow: /")
				case r.URL.Path != "/robots.txt":
					_, _ = io.WriteString(out, "58.90")
				case tt.status == 0:
					panic(http.ErrAbortHandler)
				default:
					times++
					if tt.target != "" {
						out.Header().Set("Location", tt.target)
					}
					out.WriteHeader(tt.status)
				}
			}
			w.site("example.do", answers)
			c, d := w.client(), get("https://example.do/")
			if tt.kind == "" {
				wantDocument(t, c, d, "58.90")
				return
			}
			wantFailure(t, c, d, tt.kind, "robots.txt")
			if times > 3 {
				t.Errorf("asked %d times", times)
			}
			if tt.kind == source.Blocked {
				return
			}
			w.site("example.do", text("58.90")) // 404 for robots.txt
			wantDocument(t, c, d, "58.90")
			w.site("example.do", answers)
			_ = sleep(t.Context(), 2*robotsAgeMax)
			wantDocument(t, c, d, "58.90") // what was known is believed on
		})
	}
}

func TestRobots_Large(t *testing.T) {
	inBubble(t, func(t *testing.T, w *testNetwork) {
		w.site("example.do", textWith("User-agent: *\nDisallow: /first\n"+strings.Repeat("\x00", robotsBytesMax)+"\nDisallow: /last\n", "58.90"))
		wantFailure(t, w.client(), get("https://example.do/first"), source.Blocked)
		wantDocument(t, w.client(), get("https://example.do/last"), "58.90")
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2015, 10, 21, 7, 27, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, " 120 ": 2 * time.Minute, "0": 0, "-1": 0, "1.5": 0, "86401": retryAfterMax, "999999999999999999": retryAfterMax,
		"Wed, 21 Oct 2015 07:28:00 GMT": time.Minute, "Wed, 21 Oct 2015 07:26:00 GMT": 0, "Wed, 21 Oct 2099 07:26:00 GMT": retryAfterMax,
		"Wednesday, 21-Oct-15 07:28:00 GMT": time.Minute,
	} {
		if got := readRetryAfter(text, now); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

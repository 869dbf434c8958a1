package fetch

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

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
		{"everybody out", "User-agent: *\nDisallow: /", "/tasas", false},
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
		{"the longer rule forbids", "User-agent: *\nAllow: /tasas\nDisallow: /tasas/hoy\n", "/tasas/hoy", false},
		{"a wildcard", "User-agent: *\nDisallow: /*.ashx\n", "/_layouts/15/ObtenerTasas.ashx", false},
		{"a wildcard that does not match", "User-agent: *\nDisallow: /*.pdf$\n", "/a.pdf?x", true},
		{"the query", "User-agent: *\nDisallow: /*?\n", "/a?b=c", false},
		{"the query does not count for a page", "User-agent: *\nDisallow: /*?\n", "/a", true},
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
			if got := readRules([]byte(tt.robots)).allow(address(t, "https://example.do"+tt.path)); got != tt.allowed {
				t.Errorf("%q for %s: allowed %v, want %v", tt.robots, tt.path, got, tt.allowed)
			}
		})
	}
}

// TestRobots_CrawlDelay: what the site wants, up to ten seconds.
func TestRobots_CrawlDelay(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "3": 3 * time.Second, "0.5": time.Second, "10": 10 * time.Second, "86400": 10 * time.Second,
		"-1": 0, "NaN": 0, "1e9": 0, "99999999999999999999": 0,
	} {
		if got := readRules([]byte("User-agent: *\nCrawl-delay: " + text + "\nDisallow: /x\n")).delay(); got != want {
			t.Errorf("Crawl-delay: %s is %v, want %v", text, got, want)
		}
	}
}

// TestD4_Robots: the largest robots.txt that is read, full of patterns, costs little, and forbids no less than it says.
func TestD4_Robots(t *testing.T) {
	var rules rules
	wantAllocated(t, func() {
		rules = readRules([]byte("User-agent: *\n" + strings.Repeat("Disallow: /*a*b*c*d$\n", robotsBytesMax/22) + "Disallow: /secret*\n"))
	})
	if rules.allow(address(t, "https://example.do/secret")) {
		t.Error("a rule after many patterns is lost")
	}
}

// TestRobots_Asked: once a day a host, before anything else; ignoreRobots leaves it out.
func TestRobots_Asked(t *testing.T) {
	inBubble(t, func(t *testing.T, w *web) {
		var asked []string
		rules := "User-agent: *\nDisallow: /secret\nCrawl-delay: 4\n"
		w.site("example.do", func(out http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path)
			if r.URL.Path == "/robots.txt" {
				_, _ = io.WriteString(out, rules)
				return
			}
			_, _ = io.WriteString(out, "58.90")
		})
		c := w.client()
		wantDocument(t, c, get("https://example.do/a"), "58.90")
		wantFailure(t, c, get("https://example.do/secret"), source.Blocked, "robots.txt", `"tasard"`, "ignoreRobots")
		began := clock()
		wantDocument(t, c, get("https://example.do/b"), "58.90")
		if waited := clock().Sub(began); waited != 4*time.Second {
			t.Errorf("waited %v, want the crawl delay of 4s", waited)
		}
		wantDocument(t, c, freeGet("https://example.do/secret"), "58.90")
		if got := fmt.Sprint(asked); got != "[/robots.txt /a /b /secret]" {
			t.Errorf("asked for %s", got)
		}
		rules, asked = "", nil
		wantFailure(t, c, get("https://example.do/secret"), source.Blocked)
		_ = pass(t.Context(), robotsAge)
		wantDocument(t, c, get("https://example.do/secret"), "58.90")
		if got := fmt.Sprint(asked); got != "[/robots.txt /secret]" {
			t.Errorf("a day later asked for %s", got)
		}
	})
}

// TestRobots_Missing: 4xx and what redirects away allow everything; what can't be had forbids everything, until it could be had once.
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
		caseInBubble(t, tt.name, func(t *testing.T, w *web) {
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
			_ = pass(t.Context(), 2*robotsAge)
			wantDocument(t, c, d, "58.90") // what was known is believed on
		})
	}
}

// TestRobots_Large: what is beyond the limit is left out.
func TestRobots_Large(t *testing.T) {
	inBubble(t, func(t *testing.T, w *web) {
		w.site("example.do", textWith("User-agent: *\nDisallow: /first\n"+strings.Repeat("\x00", robotsBytesMax)+"\nDisallow: /last\n", "58.90"))
		wantFailure(t, w.client(), get("https://example.do/first"), source.Blocked)
		wantDocument(t, w.client(), get("https://example.do/last"), "58.90")
	})
}

// FuzzRobots: no robots.txt breaks the reader, and one that begins by shutting everybody out stays shut, unless it allows something.
func FuzzRobots(f *testing.F) {
	for _, seed := range []string{
		"User-agent: *\nDisallow: /\n", "Disallow\n:\n\n", "User-agent: tasard\nCrawl-delay: 1e300\nAllow: /*$*\n", "\ufeff\r\r#\x00:",
	} {
		f.Add([]byte(seed), "/tasas?a=1")
	}
	f.Fuzz(func(t *testing.T, text []byte, path string) {
		u := &url.URL{Scheme: "https", Host: "example.do", Path: "/" + path}
		rules := readRules(text)
		rules.allow(u)
		if delay := rules.delay(); delay < 0 || delay > crawlDelayMax {
			t.Errorf("a delay of %v", delay)
		}
		small := strings.ToLower(string(text))
		if !strings.Contains(small, "allow:") && !strings.Contains(small, productToken) && !strings.Contains(small, "user-agent") {
			shut := readRules(append([]byte("User-agent: *\nDisallow: /\n"), text...))
			if shut.allow(u) && !strings.Contains(small, "allow") {
				t.Errorf("%q lets us in", text)
			}
		}
	})
}

// TestRetryAfter: seconds and dates.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2015, 10, 21, 7, 27, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, " 120 ": 2 * time.Minute, "0": 0, "-1": 0, "1.5": 0, "86401": retryAfterMax, "99999999999999999999": retryAfterMax,
		"Wed, 21 Oct 2015 07:28:00 GMT": time.Minute, "Wed, 21 Oct 2015 07:26:00 GMT": 0, "Wed, 21 Oct 2099 07:26:00 GMT": retryAfterMax,
		"Wednesday, 21-Oct-15 07:28:00 GMT": time.Minute,
	} {
		if got := readRetryAfter(text, now); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

package cmd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestPages_S8 wants the converter of the pages to say, rate by rate and in the same order, what /v1/convert says.
func TestPages_S8(t *testing.T) {
	t.Parallel()
	lines := header
	for i, rate := range []string{"popular,USD,,,57.50,60.85,a", "bhd,USD,branch,,57.555,60.8500001,b", "bhd,USD,digital,,57.56,59.99,c", "quezada,USD,cash,,58.00005,,d", "quezada,EUR,cash,,66.1,70.3,d"} {
		lines += fmt.Sprintf("2026-06-30T14:0%d:00Z,%s,,\n", i, rate)
	}
	p := start(t, realNow, serveArgs(t.TempDir(), "--import", writeFile(t, "o.csv", lines))...).listening()
	p.await("imported")
	totals := regexp.MustCompile(`class="total">RD\$&nbsp;<span data-total="[0-9]+">([0-9,]+\.[0-9]{2})<`)
	for _, amount := range []string{"0", "0.01", "1", "2.05", "1234.5", "999999999999.99"} {
		for _, question := range []string{"operation=buy", "operation=sell", "operation=sell&channel=digital", "operation=buy&currency=EUR"} {
			query := question + "&amount=" + url.QueryEscape(amount)
			asked := query
			if !strings.Contains(query, "currency=") {
				asked += "&currency=USD"
			}
			var answer struct {
				Data []struct{ AmountDop string }
			}
			if err := json.Unmarshal([]byte(p.mustGet("/v1/convert?"+asked)), &answer); err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for _, item := range answer.Data {
				want = append(want, item.AmountDop)
			}
			for _, found := range totals.FindAllStringSubmatch(p.mustGet("/?"+query), -1) {
				got = append(got, strings.ReplaceAll(found[1], ",", ""))
			}
			if len(want) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: the page says %v, /v1/convert %v", query, got, want)
			}
		}
	}
}

// TestPages_L6 wants pages to cost nobody's quota, and their own limit to leave the API alone.
func TestPages_L6(t *testing.T) {
	t.Parallel()
	file := observationsFile(t, observation(1, "57", "60"))
	p := start(t, realNow, serveArgs(t.TempDir(), "--import", file, "--limits", "on", "--public-url", "https://tasas.example.do")...).listening()
	p.await("imported")
	refused := 0
	for range 300 {
		status, headers := p.ask(http.MethodGet, "/terms")
		if headers.Get("X-RateLimit-Remaining") != "" {
			t.Fatal("a page tells of the API's quota")
		}
		if status == http.StatusTooManyRequests {
			refused++
			if wait, err := strconv.Atoi(headers.Get("Retry-After")); err != nil || wait < 1 {
				t.Fatalf("Retry-After %q", headers.Get("Retry-After"))
			}
		}
	}
	if refused == 0 {
		t.Error("300 pages in a row, and none is refused")
	}
	if status, headers := p.ask(http.MethodGet, "/v1/rates"); status != http.StatusOK || headers.Get("X-RateLimit-Remaining") != "59" {
		t.Errorf("the API after that: %d, remaining %q", status, headers.Get("X-RateLimit-Remaining"))
	}
}

// wantPages wants every public page of a demo in both languages, with what protects it, and unknown paths as everywhere (Q7).
func wantPages(t *testing.T, p *program) {
	t.Helper()
	for _, path := range []string{"/", "/en", "/institutions", "/en/institutions", "/institutions/popular", "/en/institutions/bcrd?days=365", "/terms", "/en/terms"} {
		body := p.mustGet(path)
		if !strings.Contains(body, "simulad") && !strings.Contains(body, "simulated") {
			t.Errorf("%s: the page of a demo does not say so", path)
		}
		status, headers := p.ask(http.MethodHead, path)
		policy := headers.Get("Content-Security-Policy")
		if status != http.StatusOK || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") ||
			headers.Get("X-Request-Id") == "" || !strings.Contains(strings.Join(headers.Values("Link"), ","), "service-desc") {
			t.Errorf("HEAD %s: %d %v", path, status, headers)
		}
	}
	if !strings.Contains(p.mustGet("/sitemap.xml"), "<loc>"+p.url+"/institutions/popular</loc>") {
		t.Error("the sitemap has not where the demo listens")
	}
	for path, want := range map[string]int{"/institutions/none": http.StatusNotFound, "/en/": http.StatusNotFound, "/Terms": http.StatusNotFound, "/?currency=usd": http.StatusBadRequest} {
		if status, _ := p.ask(http.MethodGet, path); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	if status, headers := p.ask(http.MethodPost, "/terms"); status != http.StatusMethodNotAllowed || headers.Get("Allow") == "" {
		t.Errorf("POST /terms: %d, Allow %q", status, headers.Get("Allow"))
	}
}

package apitest

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenRequests cover a seed: every operation, every kind of item, and the errors.
func goldenRequests() []string {
	return []string{
		"/v1/currencies", "/v1/institutions", "/v1/institutions?currency=EUR", "/v1/institutions/larimar", "/v1/institutions/ceiba",
		"/v1/rates", "/v1/rates?kind=reference", "/v1/rates?channel=cash&limit=2", best, "/v1/rates/best?currency=USD&operation=sell",
		"/v1/rates/best?currency=CNY&operation=buy", "/v1/rates/best?currency=EUR&operation=buy&kind=reference",
		"/v1/rates/history?currency=USD&institution=ambar", "/v1/rates/history?from=2026-02-21&to=2026-02-22", "/v1/rates/history?limit=200&from=2026-02-21",
		"/v1/convert?currency=JPY&operation=buy&amount=100000.55", "/v1/convert?currency=USD&operation=sell&amount=2.05&limit=2",
		"/v1/rates?currency=usd&limt=5", "/v1/nothing",
	}
}

// seedParts are what a data set must contain for authors of clients: each kind of rate.
func seedParts() []string {
	return []string{
		`"channel":"unspecified"`, `"channel":"branch"`, `"channel":"digital"`, `"channel":"cash"`, `"channel":"transfer"`,
		`"kind":"commercial"`, `"kind":"reference"`, `"buy":null`, `"sell":null`, `"stale":true`, `"stale":false`, `"manual":true`,
		`"datePrecision":"datetime"`, `"datePrecision":"day"`, `"datePrecision":"unknown"`, `"upstreamSource":"A`, `"website":""`,
	}
}

// playGoldenRequests sends all requests and records the bytes on the wire.
func playGoldenRequests(t *testing.T, srv *Server) []byte {
	t.Helper()
	var out bytes.Buffer
	key := srv.Key()
	fmt.Fprintf(&out, "key %s\n", key)
	for _, target := range goldenRequests() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key)
		request.Header.Set("Accept-Encoding", "identity")
		res, err := srv.Client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := httputil.DumpResponse(res, true)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		fmt.Fprintf(&out, "\nGET %s\n%s\n", target, strings.ReplaceAll(string(answer), "\r\n", "\n"))
	}
	return out.Bytes()
}

// TestGolden_Seeds checks that the answers of a version of a seed never change.
func TestGolden_Seeds(t *testing.T) {
	got := playGoldenRequests(t, Start(t, Seed(newestSeed), Limits()))
	for _, part := range seedParts() {
		if !bytes.Contains(got, []byte(part)) {
			t.Errorf("no rate has %s", part)
		}
	}
	const file = "testdata/standard-v1.golden"
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got) {
		t.Errorf("%s: a version of a seed is for ever; make a new one. It is\n%s", file, got)
	}
}

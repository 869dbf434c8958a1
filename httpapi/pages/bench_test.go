package pages_test

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/pages"
)

// realNode is the pages of a node with a year of every institution.
func realNode(b *testing.B, clock func() time.Time) http.Handler {
	b.Helper()
	system, err := actors.Open(actors.Config{
		Dir: b.TempDir(), Catalogue: engine.DefaultCatalogue(), Rules: engine.DefaultRules(), Clock: noon, Random: rand.Reader,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = system.Close() })
	<-system.Ready()
	market, today := simulated.NewMarket(1), engine.DateOf(noon())
	if _, err := system.Observe(market.History(today.AddDays(-365), today)); err != nil {
		b.Fatal(err)
	}
	mux := http.NewServeMux()
	pages.New(pages.Config{Service: system, Catalogue: engine.DefaultCatalogue(), Clock: clock}).Register(mux)
	return mux
}

// BenchmarkPage measures pages that are made anew for each request, and pages that are kept, plain and compressed.
func BenchmarkPage(b *testing.B) {
	now, visitor := noon(), 0
	h := realNode(b, func() time.Time { return now })
	ask := func(b *testing.B, path, coding string) int {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, http.NoBody)
		visitor++
		r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:0", visitor>>16&255, visitor>>8&255, visitor&255)
		r.Header.Set("Accept-Encoding", coding)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("%s: %d", path, w.Code)
		}
		return w.Body.Len()
	}
	for _, path := range []string{"/", "/?amount=250&days=365", "/institutions", "/institutions/popular?days=365", "/terms"} {
		ask(b, path, "") // the past is read once
		for _, coding := range []string{"", "gzip"} {
			b.Run(fmt.Sprintf("made/%s/%s", path, coding), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					now = now.Add(time.Millisecond)
					if now = now.Truncate(time.Second).Add(time.Second); now.Sub(noon()) > 4*time.Minute {
						now = noon() // the past is not read again
					}
					b.ReportMetric(float64(ask(b, path, coding)), "bytes")
				}
			})
			b.Run(fmt.Sprintf("kept/%s/%s", path, coding), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					ask(b, path, coding)
				}
			})
		}
	}
	b.Run("past", func(b *testing.B) { // once in five minutes for a currency that somebody looks at
		for b.Loop() {
			now = now.Add(6 * time.Minute)
			ask(b, "/", "")
		}
	})
}

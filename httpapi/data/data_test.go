package data_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/data"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// updateFlag is set by make golden.
var updateFlag = flag.Bool("update", false, "rewrite the golden files")

// fakeService is an engine.Service with real currency states and a clock.
type fakeService struct {
	engine.Service
	catalogue *engine.Catalogue
	states    map[string]*engine.SavedCurrency
	now       time.Time
	err       error
	queries   int
	refused   bool // every client is at its limit
}

// noon is 12:00 in Santo Domingo.
func noon() time.Time { return time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC) }

const testCatalogue = `{
 "institutions": [
  {"id": "bcrd", "name": "Banco Central", "type": "official"},
  {"id": "colon", "name": "Banco Colón, \"el primero\"", "type": "bank"},
  {"id": "duarte", "name": "=HYPERLINK(\"https://evil.example\")", "type": "association"},
  {"id": "htg", "name": "Casa HTG <& Hijos>", "type": "exchange"},
  {"id": "gone", "name": "Banco Cerrado", "type": "bank", "active": false}],
 "currencies": [
  {"code": "USD", "name": "Dólar estadounidense", "symbol": "US$"}, {"code": "EUR", "name": "Euro", "symbol": "€"}, {"code": "HTG", "name": "Gourde haitiano"}, {"code": "CAD", "name": "Dólar canadiense"}],
 "sources": [
  {"id": "colon-web", "name": "@sitio de Banco Colón", "url": "https://colon.example/tasas?a=1&b=2"},
  {"id": "list", "name": "Lista de agentes", "url": "", "upstreamSource": "InfoEjemplo"}]}`

func newFakeService(t *testing.T) *fakeService {
	t.Helper()
	catalogue, err := new(engine.Catalogue).Extend(strings.NewReader(testCatalogue), "catalogue.json")
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeService{catalogue: catalogue, now: noon(), states: map[string]*engine.SavedCurrency{
		"USD": {Currency: "USD"}, "EUR": {Currency: "EUR"},
	}}
	add := func(currency, institution string, channel engine.Channel, kind engine.Kind, buy, sell, source string, age time.Duration) *engine.SourceQuote {
		state := s.states[currency]
		state.SourceQuotes = append(state.SourceQuotes, engine.SourceQuote{
			Key: engine.QuoteKey{Institution: institution, Channel: channel, Kind: kind}, SourceID: source, Buy: decimal(t, buy), Sell: decimal(t, sell),
			CollectedAt: noon().Add(-age), LastCheckedAt: noon().Add(-time.Hour), ExpiresAt: noon().Add(25*time.Hour - age), Priority: engine.PriorityDefault,
		})
		return &state.SourceQuotes[len(state.SourceQuotes)-1]
	}
	add("USD", "bcrd", engine.Unspecified, engine.Reference, "58.9580", "59.3080", "bcrd-web", 20*time.Hour).EffectiveDate = engine.DateOf(noon())
	add("USD", "colon", engine.Digital, engine.Commercial, "58.30", "59.3", "colon-web", 2*time.Hour)
	add("USD", "duarte", engine.Branch, engine.Commercial, "58.40", "59.30", "manual", 30*time.Hour).Manual = true // expired
	add("USD", "htg", engine.Cash, engine.Commercial, "58.50", "", "list", time.Hour).UpstreamSource = "InfoEjemplo"
	add("EUR", "colon", engine.Unspecified, engine.Commercial, "66.10", "70.123456", "colon-web", 3*time.Hour).PublishedAt = noon().Add(-4 * time.Hour)
	for _, days := range []int{700, 366, 365, 1, 0} {
		s.addDay(engine.DateOf(noon()).AddDays(-days))
	}
	return s
}

func decimal(t *testing.T, text string) engine.Decimal {
	t.Helper()
	if text == "" {
		return engine.Decimal{}
	}
	d, err := engine.ParseDecimal(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s *fakeService) addDay(day engine.Date) {
	for currency, state := range s.states {
		for i := range state.SourceQuotes {
			q := &state.SourceQuotes[i]
			state.History = append(state.History, engine.HistoryEntry{
				Date: day, InstitutionID: q.Key.Institution, Currency: currency, Channel: q.Key.Channel, Kind: q.Key.Kind, Buy: q.Buy, Sell: q.Sell,
				SourceID: q.SourceID, DatePrecision: engine.PrecisionUnknown, ObservedAt: day.Start().Add(12 * time.Hour),
			})
		}
	}
}

func (s *fakeService) market() *engine.MarketView {
	s.queries++
	var snapshots []*engine.CurrencySnapshot
	for _, state := range s.states {
		snapshots = append(snapshots, engine.RestoreCurrencyState(*state, s.catalogue, engine.DefaultRules()).Snapshot())
	}
	return engine.NewMarketView(s.catalogue, snapshots, s.now)
}

// Pages have three items, so that files need several.
func (s *fakeService) Rates(q engine.RatesQuery) (*engine.Page[*engine.Rate], error) {
	q.Limit = min(q.Limit, 3)
	return s.market().Rates(q), s.err
}

func (s *fakeService) History(q engine.HistoryQuery) (*engine.Page[engine.HistoryEntry], error) {
	q.Limit = min(q.Limit, 3)
	return s.market().History(q), s.err
}

func (s *fakeService) serve(publicURL string) http.Handler {
	mux := http.NewServeMux()
	data.Register(mux, data.Config{
		Service: s, Catalogue: s.catalogue, Clock: func() time.Time { return s.now }, PublicURL: publicURL, Logger: slog.New(slog.DiscardHandler),
		Admit: func(*http.Request) (time.Duration, bool) { return 1500 * time.Millisecond, !s.refused },
	})
	return mux
}

func ask(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
	r.Header.Set("X-Request-Id", "id7")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	h.ServeHTTP(w, r)
	return w
}

const publicURL = "https://tasas.example"

func files() []string {
	return []string{
		"/data/latest.json", "/data/latest.csv", "/data/history.csv", "/data/history/2024.csv", "/data/history/2026.csv", "/feeds/usd.atom", "/feeds/colon.atom",
	}
}

// TestGolden_Files compares every file and every kind of error with its golden file: status, headers, body.
func TestGolden_Files(t *testing.T) {
	s := newFakeService(t)
	h := s.serve(publicURL)
	golden := func(name string, w *httptest.ResponseRecorder) {
		t.Helper()
		var header bytes.Buffer
		_ = w.Header().Write(&header) // sorted
		got := fmt.Sprintf("%d\n%s\n%s", w.Code, strings.ReplaceAll(header.String(), "\r", ""), strings.ReplaceAll(w.Body.String(), "\r", ""))
		file := filepath.Join("testdata", strings.ReplaceAll(strings.Trim(name, "/"), "/", "-")+".txt")
		if *updateFlag {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || got != string(want) {
			t.Errorf("%s differs (%v); make golden rewrites it. It is\n%s", file, err, got)
		}
	}
	for _, path := range files() {
		golden(path, ask(h, http.MethodGet, path))
	}
	golden("/feeds/htg.atom", ask(s.serve(""), http.MethodGet, "/feeds/htg.atom")) // an institution with the name of a currency, no public URL
	golden("/feeds/cad.atom", ask(h, http.MethodGet, "/feeds/cad.atom"))           // no rates
	golden("options", ask(h, http.MethodOptions, "/data/latest.csv"))
	golden("405", ask(h, http.MethodPost, "/feeds/usd.atom"))
	golden("404", ask(h, http.MethodGet, "/feeds/nothing.atom"))
	golden("304", ask(h, http.MethodGet, "/data/latest.csv", "If-None-Match", "*"))
	s.now, s.err = s.now.Add(time.Hour), &engine.Error{Code: engine.CodeDataUnavailable, Message: "no rate has been published yet"}
	golden("503", ask(h, http.MethodGet, "/data/latest.json"))
	s.err = io.ErrUnexpectedEOF
	golden("500", ask(h, http.MethodGet, "/data/history.csv"))
	s.refused = true
	golden("429", ask(h, http.MethodGet, "/data/history.csv"))
}

// TestFiles_None: other names have no file, and neither have inactive institutions and other years.
func TestFiles_None(t *testing.T) {
	h := newFakeService(t).serve(publicURL)
	for _, path := range []string{
		"/feeds/USD.atom", "/feeds/usd.rss", "/feeds/usd.json", "/feeds/usd", "/feeds/gone.atom", "/feeds/.atom", "/feeds/Colon.atom", "/feeds/usd.atom.json", "/feeds/%2E.atom",
		"/data/history/1989.csv", "/data/history/2027.csv", "/data/history/02026.csv", "/data/history/+2026.csv", "/data/history/2026", "/data/other", "/feeds/usd.atom/",
	} {
		if w := ask(h, http.MethodGet, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestFiles_Versions: a file is made once in its time, keeps its ETag while nothing changes, and gets another one when
// a rate does. Its compressed form is the same file.
func TestFiles_Versions(t *testing.T) {
	for _, path := range files() {
		s := newFakeService(t)
		h := s.serve(publicURL)
		first := ask(h, http.MethodGet, path)
		made, tag := s.queries, first.Header().Get("ETag")
		packed := ask(h, http.MethodGet, path, "Accept-Encoding", "gzip")
		if s.queries != made {
			t.Errorf("%s: made for each request", path)
		}
		unpacked := io.Reader(packed.Body)
		if first.Body.Len() >= rendered.GzipBytesMin {
			reader, err := gzip.NewReader(packed.Body)
			if err != nil {
				t.Fatal(err)
			}
			unpacked = reader
		}
		if text, err := io.ReadAll(unpacked); err != nil || string(text) != first.Body.String() || packed.Header().Get("ETag") != tag {
			t.Errorf("%s: the compressed form differs: %v", path, err)
		}
		s.now = s.now.Add(time.Minute)
		if w := ask(h, http.MethodHead, path, "If-None-Match", tag); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
			t.Errorf("%s: %d though nothing changed", path, w.Code)
		}
		for _, state := range s.states {
			for i := range state.SourceQuotes {
				state.SourceQuotes[i].Buy, state.SourceQuotes[i].CollectedAt = decimal(t, "58.00"), s.now
			}
			for i := range state.History {
				state.History[i].Buy = decimal(t, "58.00")
			}
		}
		s.now = s.now.Add(time.Hour)
		if w := ask(h, http.MethodGet, path, "If-None-Match", tag); w.Code != http.StatusOK || w.Header().Get("ETag") == tag {
			t.Errorf("%s: %d after a change", path, w.Code)
		}
		s.now = s.now.Add(-24 * time.Hour) // the clock was set back
		if made = s.queries; ask(h, http.MethodGet, path).Code != http.StatusOK || s.queries == made {
			t.Errorf("%s: kept after the clock was set back", path)
		}
	}
}

// TestCSV_Readable: each row has the columns of the header, decimals are the texts of the source, and no cell begins
// like a formula.
func TestCSV_Readable(t *testing.T) {
	h := newFakeService(t).serve(publicURL)
	for _, path := range files() {
		if !strings.HasSuffix(path, ".csv") {
			continue
		}
		rows, err := csv.NewReader(ask(h, http.MethodGet, path).Body).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Fatalf("%s: %d rows, %v", path, len(rows), err)
		}
		cells := slices.Concat(rows...)
		for _, cell := range cells {
			if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
				t.Errorf("%s: a spreadsheet takes %q for a formula", path, cell)
			}
		}
		for _, text := range []string{"58.9580", "59.3", "70.123456"} {
			if !slices.Contains(cells, text) {
				t.Errorf("%s has no %s", path, text)
			}
		}
	}
}

// TestFeeds_Valid checks what RFC 4287 requires: ids that are unique, absolute and stay, times, titles,
// an author, and a link to the feed itself.
func TestFeeds_Valid(t *testing.T) {
	type link struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
	}
	type element struct {
		ID      string `xml:"id"`
		Title   string `xml:"title"`
		Updated string `xml:"updated"`
		Content string `xml:"content"`
		Link    []link `xml:"link"`
	}
	for _, base := range []string{publicURL, ""} {
		h := newFakeService(t).serve(base)
		for _, path := range []string{"/feeds/usd.atom", "/feeds/htg.atom", "/feeds/eur.atom", "/feeds/duarte.atom", "/feeds/bcrd.atom"} {
			var feed struct {
				XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
				element
				Author string    `xml:"author>name"`
				Entry  []element `xml:"entry"`
			}
			if err := xml.Unmarshal(ask(h, http.MethodGet, path).Body.Bytes(), &feed); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			ids := map[string]bool{}
			for i, e := range append(feed.Entry, feed.element) {
				updated, err := time.Parse(time.RFC3339, e.Updated)
				if err != nil || ids[e.ID] || !strings.Contains(e.ID, ":") || e.Title == "" || i < len(feed.Entry) && e.Content == "" || updated.After(noon()) {
					t.Errorf("%s: %v %+v", path, err, e)
				}
				ids[e.ID] = true
			}
			if len(feed.Entry) == 0 || feed.Author == "" || feed.Link[0] != (link{"self", base + path}) || feed.Updated != feed.Entry[0].Updated {
				t.Errorf("%s: %+v", path, feed)
			}
		}
	}
}

// TestFeeds_IDsStay: the ids of entries stay when the address of the site changes.
func TestFeeds_IDsStay(t *testing.T) {
	ids := func(base string) []string {
		return regexp.MustCompile(`<id>[^<]*`).FindAllString(ask(newFakeService(t).serve(base), http.MethodGet, "/feeds/usd.atom").Body.String(), -1)
	}
	if before, after := ids("http://a.example"), ids("https://b.example"); len(before) < 4 || !slices.Equal(before, after) {
		t.Errorf("%q, then %q", before, after)
	}
}

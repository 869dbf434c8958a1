package simulated

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tasard/tasard/collectors/fetch"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

const (
	workbookAddress = "https://cdn.bancentral.gov.do" + documents + "TASA_DOLAR_REFERENCIA_MC.xlsx"
	bhdAddress      = "https://backend.bhd.com.do/api/modal-cambio-rate?populate=deep"
)

// TestSite_Cookies holds the trap of the central bank: without all cookies, or with both of the doubled one, the
// answer is empty.
func TestSite_Cookies(t *testing.T) {
	site := shared()
	client := siteClient(t, site)
	handed := get(t, client, "https://"+centralBank+"/SectorExterno/HistoricoTasas").cookies
	if doubled := slices.DeleteFunc(slices.Clone(handed), func(c *http.Cookie) bool { return c.Name != "wptem" }); len(doubled) != 2 ||
		doubled[0].Value != "" || doubled[1].Value == "" {
		t.Errorf("wptem is set as %v", doubled)
	}
	client.Jar = nil
	ask := func(cookies []*http.Cookie) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+centralBank+"/Home/GetActualExchangeRate", http.NoBody)
		must(t, err)
		r.Header.Set("Content-Type", formContent)
		for _, cookie := range cookies {
			r.AddCookie(cookie)
		}
		got := sendRequest(t, client, r)
		if got.status != http.StatusOK {
			t.Errorf("status %d", got.status)
		}
		return len(got.body)
	}
	tests := []struct {
		name    string
		cookies []*http.Cookie
		good    bool
	}{
		{"none", nil, false}, {"both of the doubled one", handed, false}, {"all but the first", handed[1:], true},
		{"one too few", handed[2:], false}, {"the empty one of the doubled", handed[:3], false},
	}
	for _, test := range tests {
		if got := ask(test.cookies); got > 0 != test.good {
			t.Errorf("%s: %d bytes", test.name, got)
		}
	}
}

// TestSite_Manners wants validators, packing, robots and the way from port 80 as real servers have them.
func TestSite_Manners(t *testing.T) {
	site := shared()
	client := siteClient(t, site)
	first := get(t, client, workbookAddress)
	book, tag, modified := first.body, first.header.Get("ETag"), first.header.Get("Last-Modified")
	if tag == "" || modified != "Fri, 18 Sep 2026 21:00:00 GMT" || !bytes.HasPrefix(book, []byte("PK")) {
		t.Errorf("the workbook begins with %.2q, has the tag %q and was modified %q", book, tag, modified)
	}
	for _, headers := range [][]string{{"If-None-Match", tag}, {"If-Modified-Since", modified}} {
		if again := get(t, client, workbookAddress, headers...); again.status != http.StatusNotModified || len(again.body) > 0 {
			t.Errorf("%s: %d with %d bytes", headers[0], again.status, len(again.body))
		}
	}
	if again := get(t, client, workbookAddress, "If-None-Match", `"other"`, "If-Modified-Since", modified); again.status != http.StatusOK {
		t.Errorf("another tag: %d", again.status)
	}
	plain := get(t, client, "https://www.banreservas.com/")
	zipped := get(t, client, "https://www.banreservas.com/", "Accept-Encoding", "gzip")
	unpacked, err := gzip.NewReader(bytes.NewReader(zipped.body))
	must(t, err)
	if got, err := io.ReadAll(unpacked); err != nil || !bytes.Equal(got, plain.body) || len(zipped.body) >= len(plain.body) ||
		zipped.header.Get("Content-Encoding") != "gzip" || plain.header.Get("Content-Encoding") != "" {
		t.Errorf("%d bytes are %d packed (%v)", len(plain.body), len(zipped.body), err)
	}
	if r := get(t, client, "https://qik.do/robots.txt"); r.status != http.StatusOK || !bytes.Contains(r.body, []byte("User-agent: *")) {
		t.Errorf("robots.txt: %d %s", r.status, r.body)
	}
	if r := get(t, client, "https://qik.do/nowhere"); r.status != http.StatusNotFound {
		t.Errorf("an unknown page: %d", r.status)
	}
	if _, err := site.Dial(t.Context(), "tcp", "qik.do:80"); err == nil {
		t.Error("port 80 is open")
	}
}

func TestSite_CharacterSets(t *testing.T) {
	site := publishedSite()
	for id, wanted := range map[string]string{"caribe-site": "text/html", "bonanza-site": "text/html", "bdi-site": contentHTML} {
		d := site.Document(id, 0)
		isLatin := bytes.Contains(d.Body, []byte("Pr\xe9stamos"))
		if d.ContentType != wanted || isLatin != (wanted == "text/html") {
			t.Errorf("%s: %s, in windows-1252: %t", id, d.ContentType, isLatin)
		}
	}
	if got := string(encodeWindows1252([]byte("año €…‽\xc3"))); got != "a\xf1o \x80\x85&#8253;?" {
		t.Errorf("got %q", got)
	}
}

// TestSite_SilentInstitutions wants 503 where the market has nothing to say, and its row gone from the aggregator.
func TestSite_SilentInstitutions(t *testing.T) {
	market := NewMarket(1)
	site := startSite(t, market)
	if r := get(t, siteClient(t, site), bhdAddress); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
		t.Errorf("before the first step: %d", r.status)
	}
	at := noon()
	for _, id := range []string{"bhd", "gamelin"} {
		for market.Step(at); !market.snapshot().silent[id] || id == "gamelin" && market.snapshot().silent["bhd"]; market.Step(at) {
			at = at.Add(24 * time.Hour)
		}
		if r := get(t, siteClient(t, site), bhdAddress); id == "bhd" && r.status != http.StatusServiceUnavailable {
			t.Errorf("silent: %d", r.status)
		}
		page := get(t, siteClient(t, site), "https://www.infodolar.com.do/").body
		if id == "gamelin" && bytes.Contains(page, []byte("Gamelin")) || !bytes.Contains(page, []byte("Banco BHD")) {
			t.Error("the aggregator lists a house that is silent, or forgot a bank whose own site is")
		}
	}
}

// TestSite_CloseWaits wants Close to end answers that would never end, and to wait for them.
func TestSite_CloseWaits(t *testing.T) {
	site := startSite(t, publishedSite().market)
	site.pace = time.Hour
	arrived := make(chan struct{}, 16)
	observe(site, func(*http.Request) { arrived <- struct{}{} })
	transport := &http.Transport{DialContext: site.Dial, TLSClientConfig: &tls.Config{RootCAs: site.Roots()}}
	var reading sync.WaitGroup
	for host, fault := range map[string]Fault{"backend.bhd.com.do": Hang, "qik.do": HangBody, "www.banreservas.com": Trickle, "www.infodolar.com.do": Huge} {
		must(t, site.SetFault(host, fault))
		reading.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/", nil)
			if err != nil {
				t.Error(err)
				return
			}
			if response, err := transport.RoundTrip(r); err == nil {
				if fault == Huge {
					_, _ = response.Body.Read(make([]byte, 1))
				}
				response.Body.Close()
			}
		})
	}
	for range 4 {
		<-arrived
	}
	for range 2 {
		must(t, site.Close())
	}
	reading.Wait()
	transport.CloseIdleConnections()
	if _, err := site.Dial(t.Context(), "tcp", "qik.do:443"); err == nil {
		t.Error("a closed site is dialled")
	}
}

// TestSite_WhileTheMarketMoves reads and steps at the same time, for the race detector.
func TestSite_WhileTheMarketMoves(t *testing.T) {
	site := publishedSite()
	var both sync.WaitGroup
	both.Go(func() {
		for i := range 300 {
			site.market.Step(noon().Add(time.Duration(i) * time.Hour))
		}
	})
	both.Go(func() {
		for range sweep(3, 20) {
			for _, d := range source.DefaultSet().Definitions() {
				site.Document(d.ID, 0)
			}
		}
	})
	both.Wait()
}

// TestSite_Trickle counts bytes in a time that is not real.
func TestSite_Trickle(t *testing.T) {
	market := NewMarket(1)
	market.Step(noon())
	synctest.Test(t, func(t *testing.T) {
		site := NewSite(market)
		w := &slowly{header: http.Header{}}
		ctx, cancel := context.WithTimeout(t.Context(), 10500*time.Millisecond)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://qik.do/", nil)
		must(t, err)
		site.sendSlowly(w, r, document{contentType: contentHTML, body: make([]byte, 100)}, true)
		if w.bytes != 11 {
			t.Errorf("%d bytes in ten seconds and a half", w.bytes)
		}
	})
}

type slowly struct {
	header http.Header
	bytes  int
}

func (s *slowly) Header() http.Header { return s.header }
func (s *slowly) WriteHeader(int)     {}
func (s *slowly) Flush()              {}
func (s *slowly) Write(p []byte) (int, error) {
	s.bytes += len(p)
	return len(p), nil
}

// collector is the client of the program, with the site for its network. Bounds are short where nothing has to
// arrive.
func collector(t *testing.T, site *Site, budget time.Duration) *fetch.Client {
	t.Helper()
	client := fetch.New(fetch.Config{
		Clock: noon, UserAgent: "tasard/test (+https://github.com/tasard/tasard)", Dial: site.Dial, Roots: site.Roots(), Pause: -1,
		RequestTimeout: budget, FetchTimeout: budget,
	})
	t.Cleanup(func() { client.Close() })
	return client
}

// TestSite_DocumentIsWhatIsServed: the program's own client, with cookies, second steps, certificates and packing,
// gets the bytes that tests see without a network.
func TestSite_DocumentIsWhatIsServed(t *testing.T) {
	site := startSite(t, publishedSite().market)
	observe(site, func(r *http.Request) {
		if r.UserAgent() != "tasard/test (+https://github.com/tasard/tasard)" {
			t.Errorf("%s saw %q", r.Host, r.UserAgent())
		}
	})
	client := collector(t, site, 30*time.Second)
	silent := site.market.snapshot().silent
	for _, d := range Definitions(source.DefaultSet()).Definitions() {
		for page := range d.Pages {
			if silent[d.Institution] || d.SecretNames() != nil {
				continue
			}
			inside := site.Document(d.ID, page)
			served, err := client.Fetch(t.Context(), d, page)
			if err != nil || inside == nil {
				t.Errorf("%s, page %d: %v; inside %v", d.ID, page, err, inside)
			} else if !bytes.Equal(served.Body, inside.Body) || served.ContentType != inside.ContentType {
				t.Errorf("%s, page %d: served %s, given %s", d.ID, page, served.ContentType, inside.ContentType)
			}
		}
	}
	if site.Document("unknown", 0) != nil || site.Document("bhd-site", 1) != nil || site.Document("bhd-site", -1) != nil {
		t.Error("a page that does not exist has a document")
	}
}

// TestSite_Secrets reads the sources that need a secret: with the right one they say what the market does, with a wrong
// one, or none, they are refused.
func TestSite_Secrets(t *testing.T) {
	site := startSite(t, publishedSite().market)
	for _, id := range []string{"popular-api", "tasareal", "indexa"} {
		d, _ := source.DefaultSet().Find(id)
		for _, secret := range []string{"secret", "wrong", ""} {
			client := fetch.New(fetch.Config{Clock: noon, Dial: site.Dial, Roots: site.Roots(), Pause: -1, Secret: func(string) string { return secret }})
			document, err := client.Fetch(t.Context(), d, 0)
			client.Close()
			if refused := secret == "" || secret == "wrong" && id != "indexa"; refused {
				if failure := new(source.Failure); !errors.As(err, &failure) || failure.Kind != source.Blocked || !strings.Contains(failure.Detail, "secret "+d.SecretNames()[0]) {
					t.Errorf("%s with the secret %q: %v", id, secret, err)
				}
				continue
			}
			must(t, err)
			result, err := d.Parse(0, document)
			must(t, err)
			for _, o := range result.Observations {
				if o.InstitutionID != "popular" || o.Currency != "USD" {
					continue
				}
				if want := site.market.snapshot().quotes; !slices.ContainsFunc(want, func(q engine.Observation) bool {
					return q.InstitutionID == "popular" && q.Currency == "USD" && sameSide(q.Buy, o.Buy) && sameSide(q.Sell, o.Sell)
				}) {
					t.Errorf("%s: %+v is not in the market", id, o)
				}
			}
			if len(result.Observations) < 2 {
				t.Errorf("%s: %d rates", id, len(result.Observations))
			}
		}
	}
}

// TestFaults_AreTold wants each fault to come out as the failure that it is, from a page, a service and a workbook.
func TestFaults_AreTold(t *testing.T) {
	site := shared()
	page, service, book := "bdi-site", "bhd-site", "bcrd-usd"
	tests := []struct {
		fault Fault
		on    []string
		kinds []source.FailureKind
		says  string
	}{
		{Layout, []string{page, service, book}, []source.FailureKind{source.Layout}, ""},
		{Challenge, []string{page, service}, []source.FailureKind{source.Blocked}, ""},
		{Challenge, []string{book}, []source.FailureKind{source.Blocked, source.WrongContent}, ""},
		{Forbidden, []string{page, service, book}, []source.FailureKind{source.Blocked}, ""},
		{EmptyBody, []string{page, service, book}, []source.FailureKind{source.Empty}, ""},
		{Half, []string{page, service, book}, []source.FailureKind{source.WrongContent}, ""},
		{ErrorPage, []string{service, book}, []source.FailureKind{source.WrongContent}, ""},
		{ErrorPage, []string{page}, []source.FailureKind{source.Layout}, ""},
		{Zeros, []string{page, service}, []source.FailureKind{source.Empty}, ""},
		{NotAvailable, []string{page, service}, []source.FailureKind{source.Empty, source.Value}, ""},
		{Hang, []string{service}, []source.FailureKind{source.Timeout}, ""},
		{HangBody, []string{book}, []source.FailureKind{source.Timeout}, ""},
		{Trickle, []string{page}, []source.FailureKind{source.Timeout}, ""},
		{Redirect, []string{page, service, book}, []source.FailureKind{source.HTTPStatus}, otherHost},
		{RedirectLoop, []string{page, service, book}, []source.FailureKind{source.HTTPStatus}, "more than 5"},
		{Bomb, []string{page, service}, []source.FailureKind{source.WrongContent}, ""},
		{Huge, []string{page, service, book}, []source.FailureKind{source.WrongContent}, ""},
	}
	for _, test := range tests {
		for _, id := range test.on {
			d, _ := source.DefaultSet().Find(id)
			must(t, site.SetFault(id, test.fault))
			budget := 30 * time.Second
			if test.kinds[0] == source.Timeout {
				budget = 300 * time.Millisecond // nothing comes
			}
			var failure *source.Failure
			document, err := collector(t, site, budget).Fetch(t.Context(), d, 0)
			if err == nil {
				_, err = d.Parse(0, document)
			}
			if !errors.As(err, &failure) || !slices.Contains(test.kinds, failure.Kind) || !strings.Contains(failure.Error(), test.says) {
				t.Errorf("%s of %s: %v, want %v", test.fault, id, err, test.kinds)
			}
			site.ClearFaults(id)
		}
	}
}

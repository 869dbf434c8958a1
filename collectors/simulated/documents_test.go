package simulated

import (
	"archive/zip"
	"bytes"
	"crypto/x509"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// TestFaults_Show wants each fault that changes documents to be seen in the bytes of every source that can have it.
func TestFaults_Show(t *testing.T) {
	site := publishedSite()
	changed := map[Fault]int{}
	for _, d := range enabled() {
		good := site.Document(d.ID, 0)
		for _, fault := range Faults() {
			must(t, site.SetFault("demo-"+d.ID, fault))
			if fault != Redirect && !bytes.Equal(site.Document(d.ID, 0).Body, good.Body) {
				changed[fault]++
			}
			site.ClearFaults(d.ID)
		}
		if !bytes.Equal(site.Document(d.ID, 0).Body, good.Body) {
			t.Errorf("%s is not mended", d.ID)
		}
	}
	all := len(enabled())
	t.Logf("%v of %d sources", changed, all)
	for fault, most := range map[Fault]int{ // sources that the fault cannot reach: one side, one currency, no dates
		Zeros: 0, LostDecimal: 0, DecimalComma: 0, Footnote: 0, NotAvailable: 0, WrongCurrency: 0, Layout: 0, Challenge: 0, Forbidden: 0,
		EmptyBody: 0, Half: 0, ErrorPage: 0, Swapped: 2, SameTwice: 2, MissingSide: 4, FutureDate: 6, Frozen: 8, Reordered: all - 8,
	} {
		if changed[fault] < all-most {
			t.Errorf("%s changes %d of %d sources, want %d", fault, changed[fault], all, all-most)
		}
	}
}

// TestFaults_Targets wants a fault to last until it is cleared, and to reach no neighbour.
func TestFaults_Targets(t *testing.T) {
	site := shared()
	client := siteClient(t, site)
	statuses := func(address string, times int) string {
		var all []string
		for range times {
			all = append(all, strconv.Itoa(get(t, client, address).status))
		}
		return strings.Join(all, " ")
	}
	must(t, site.SetFault("demo-bhd-site", ServerError))
	if got := statuses(bhdAddress, 2); got != "500 500" {
		t.Errorf("a fault: %s", got)
	}
	site.ClearFaults("demo-bhd-site")
	if got := statuses(bhdAddress, 2); got != "200 200" {
		t.Errorf("no fault any more: %s", got)
	}
	must(t, site.SetFault("banreservas-json", TooMany))
	if got := statuses("https://www.banreservas.com/", 2); got != "200 200" {
		t.Errorf("another page of the host: %s", got)
	}
	must(t, site.SetFault("www.banreservas.com", Forbidden))
	if got := statuses("https://www.banreservas.com/", 2); got != "403 403" {
		t.Errorf("the host: %s", got)
	}
	address := "https://www.banreservas.com/_layouts/15/SharePointAPI/ObtenerTasas.ashx"
	r := get(t, client, address)
	if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "2" {
		t.Errorf("the source has its own fault: %d", r.status)
	}
	site.ClearFaults("www.banreservas.com")
	site.ClearFaults("banreservas-json")
	if got := statuses(address, 2); got != "200 200" {
		t.Errorf("mended: %s", got)
	}
	for _, bad := range [][2]string{{"unknown-site", "hang"}, {"bhd-site", "rain"}} {
		if err := site.SetFault(bad[0], Fault(bad[1])); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// TestFaults_Certificates wants a broken certificate to be shown to a client whose connection was kept, too.
func TestFaults_Certificates(t *testing.T) {
	site := shared()
	client := siteClient(t, site)
	get(t, client, bhdAddress)
	for fault, wanted := range map[Fault]any{
		WrongName: new(x509.HostnameError), Expired: new(x509.CertificateInvalidError), UnknownSigner: new(x509.UnknownAuthorityError),
	} {
		must(t, site.SetFault("bhd-site", fault))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, bhdAddress, nil)
		must(t, err)
		response, err := client.Do(r)
		if err == nil {
			response.Body.Close()
		}
		if !errors.As(err, wanted) {
			t.Errorf("%s: %v", fault, err)
		}
		site.ClearFaults("bhd-site")
	}
}

func TestFaults_Sizes(t *testing.T) {
	market := NewMarket(1)
	market.Step(noon())
	site := NewSite(market)
	body := site.Document("bhd-site", 0).Body
	w := &slowly{header: http.Header{}}
	sendHuge(w, document{contentType: contentJSON, body: body})
	if w.bytes < hugeBytes || w.bytes > hugeBytes+chunkBytes {
		t.Errorf("%d bytes", w.bytes)
	}
	w = &slowly{header: http.Header{}}
	site.sendBomb(w, document{contentType: contentJSON, body: body})
	if w.bytes > 12<<20 || w.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%d bytes, packed as %q", w.bytes, w.header.Get("Content-Encoding"))
	}
	must(t, site.SetFault("bcrd-usd", Bomb))
	book := site.Document("bcrd-usd", 0).Body
	archive, err := zip.NewReader(bytes.NewReader(book), int64(len(book)))
	must(t, err)
	if len(book) > 1<<20 || archive.File[0].UncompressedSize64 < sheetBytes {
		t.Errorf("the workbook has %d bytes, its first sheet %d", len(book), archive.File[0].UncompressedSize64)
	}
}

func TestFaults_Time(t *testing.T) {
	site := publishedSite()
	day := func(id string) engine.Date {
		t.Helper()
		d, _ := source.DefaultSet().Find(id)
		answer, err := d.Parse(0, site.Document(id, 0))
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		return answer.Observations[0].EffectiveDate
	}
	early := NewMarket(2)
	ahead := NewSite(early)
	must(t, ahead.SetFault("bdi-site", Frozen))
	early.Step(noon())
	if body := ahead.Document("bdi-site", 0).Body; !bytes.Contains(body, []byte("Actualizado: 20/09/2026 12:00")) {
		t.Error("frozen before the market began, it is not of the day before the first answer")
	}
	ids := []string{"bcrd-reference", "bcrd-usd", "bcrd-currencies", "bdi-site", "lafise-site", "banesco-site"}
	for _, id := range ids {
		today := day(id)
		must(t, site.SetFault(id, FutureDate))
		if ahead := day(id); ahead != today+futureDays {
			t.Errorf("%s: %s, ahead of %s", id, ahead, today)
		}
		must(t, site.SetFault(id, Frozen))
		old, bytesThen := day(id), site.Document(id, 0).Body
		site.market.Step(site.market.snapshot().time.AddDate(0, 0, 1))
		if old >= today || !bytes.Equal(bytesThen, site.Document(id, 0).Body) {
			t.Errorf("%s: %s is no older than %s, or it moves", id, old, today)
		}
		site.ClearFaults(id)
	}
}

// TestSite_RoundTrip reads every source and wants exactly what the market quotes; its pages are not written from the
// definitions.
func TestSite_RoundTrip(t *testing.T) {
	market, at := NewMarket(1), noon()
	market.History(day("2026-08-01"), day("2026-09-20"))
	site := NewSite(market)
	read, steps := 0, sweep(10, 50)
	for step := range steps {
		at = at.Add(7 * time.Minute)
		market.Step(at)
		for _, d := range enabled() {
			if d.Institution != "" && market.snapshot().silent[d.Institution] {
				continue
			}
			got, err := readings(d, func(page int) *source.Document { return site.Document(d.ID, page) })
			if err != nil {
				t.Fatalf("step %d: %s: %v", step, d.ID, err)
			}
			if wrong := differences(got, expected(market, d)); wrong != "" {
				t.Fatalf("step %d: %s:\n%s", step, d.ID, wrong)
			}
			read += len(got)
		}
	}
	t.Logf("%d quotes of %d sources read in %d steps", read, len(enabled()), steps)
}

// TestMarket_EveryQuoteHasASource wants each quote of the market read by exactly one of the sources that are
// collected.
func TestMarket_EveryQuoteHasASource(t *testing.T) {
	m := NewMarket(1)
	listedQuotes := map[quoteID]string{}
	for _, refresh := range m.Refreshes(noon()) {
		for _, o := range refresh.Observations {
			name := nameOf(o)
			if other, twice := listedQuotes[name]; twice {
				t.Errorf("%v is in %s and %s", name, other, refresh.SourceID)
			}
			listedQuotes[name] = refresh.SourceID
		}
	}
	for _, o := range m.Quotes() {
		if _, ok := listedQuotes[nameOf(o)]; !ok {
			t.Errorf("no definition reads %v", nameOf(o))
		}
	}
}

// TestMarket_HistoryIsOfTheSourcesThatGoOn: live collection continues what History began: the same sources, quotes
// and dates.
func TestMarket_HistoryIsOfTheSourcesThatGoOn(t *testing.T) {
	m := NewMarket(1)
	site := NewSite(m)
	set := Definitions(source.DefaultSet())
	for _, refresh := range m.History(day("2026-09-18"), day("2026-09-18")) {
		d, ok := set.Find(refresh.SourceID)
		if !ok {
			t.Errorf("%s is no definition", refresh.SourceID)
			continue
		}
		live, err := readings(d, func(page int) *source.Document { return site.Document(d.ID, page) })
		if err != nil {
			t.Errorf("%s: %v", d.ID, err)
		}
		for _, o := range refresh.Observations {
			if got, ok := live[nameOf(o)]; !ok || !same(got, o) {
				t.Errorf("%s: the history says %+v, its page %+v", d.ID, o, live[nameOf(o)])
			}
		}
	}
}

// TestDefinitions_SayThatTheyAreNotReal wants simulated sources to differ from real ones in id, name and address
// only.
func TestDefinitions_SayThatTheyAreNotReal(t *testing.T) {
	real := source.DefaultSet()
	demo := Definitions(real).Definitions()
	if len(demo) != len(real.Definitions()) {
		t.Fatalf("%d definitions of %d", len(demo), len(real.Definitions()))
	}
	for _, d := range demo {
		from, ok := real.Find(d.ID[len("demo-"):])
		if !ok || d.Name != "Demo, tasas simuladas: "+from.Name || d.URL != "" || len(d.Pages) != len(from.Pages) {
			t.Errorf("%s is %q at %q", d.ID, d.Name, d.URL)
		}
	}
}

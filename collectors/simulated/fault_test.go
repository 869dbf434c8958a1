package simulated

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// TestFaults_Show wants each fault that changes documents to be seen in the bytes of every source that can have it.
func TestFaults_Show(t *testing.T) {
	site := open(t, SiteConfig{})
	changed := map[Fault]int{}
	for _, d := range enabled() {
		good := site.Document(d.ID, 0)
		for _, fault := range Faults() {
			if err := site.Break("demo-"+d.ID, fault); err != nil {
				t.Fatal(err)
			}
			if fault != Redirect && !bytes.Equal(site.Document(d.ID, 0).Body, good.Body) {
				changed[fault]++
			}
			site.Mend(d.ID)
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

// TestD1_FaultsNeverReadAsOtherRates: a damaged document gives nothing, texts that the engine refuses, or the right values.
func TestD1_FaultsNeverReadAsOtherRates(t *testing.T) {
	site := open(t, SiteConfig{})
	right, wrong := 0, 0
	for i, d := range enabled() {
		if raceDetector && i%5 > 0 {
			continue
		}
		want := expected(site.market, d)
		for _, fault := range []Fault{
			Zeros, LostDecimal, DecimalComma, Footnote, NotAvailable, Reordered, Layout, Challenge, Forbidden, EmptyBody, Half, ErrorPage,
		} {
			if err := site.Break(d.ID, fault); err != nil {
				t.Fatal(err)
			}
			got, err := readings(d, func(page int) *source.Document { return site.Document(d.ID, page) })
			site.Mend(d.ID)
			if fault == Reordered && err != nil {
				t.Errorf("%s, %s: %v", d.ID, fault, err)
			}
			for name, o := range got {
				if o.EffectiveDate != want[name].EffectiveDate {
					continue // a workbook whose newest row is unreadable gives the day before, under its own date
				}
				for _, side := range []struct{ got, want string }{{o.Buy, want[name].Buy}, {o.Sell, want[name].Sell}} {
					switch {
					case !believable(d, name.currency, o.EffectiveDate, side.got):
					case sameSide(side.got, side.want):
						right++
					default:
						wrong++
						t.Errorf("%s, %s: %v is read as %s, it is %s", d.ID, fault, name, side.got, side.want)
					}
				}
			}
		}
	}
	t.Logf("%d sides right, %d wrong", right, wrong)
}

// believable reports that a side is a number within the band of its currency, which is all that protects a first reading.
func believable(d *source.Definition, code string, day engine.Date, text string) bool {
	value, err := engine.ParseDecimal(text)
	if err != nil || value.IsZero() || len(text) > 1 && text[0] == '0' && text[1] != '.' {
		return false
	}
	currency, _ := engine.DefaultCatalogue().Currency(code)
	lowest, highest := currency.Lowest, currency.Highest
	for _, bound := range d.Bounds {
		if bound.Currency == code && (bound.Until == 0 || day <= bound.Until) {
			if !bound.Lowest.IsNull() {
				lowest = bound.Lowest
			}
			if !bound.Highest.IsNull() {
				highest = bound.Highest
			}
			break
		}
	}
	return (lowest.IsNull() || value.Compare(lowest) >= 0) && (highest.IsNull() || value.Compare(highest) <= 0)
}

// TestFaults_Times wants a fault to end by itself, to be mended, and to reach no neighbour.
func TestFaults_Times(t *testing.T) {
	site := open(t, SiteConfig{})
	client := visitor(t, site)
	statuses := func(address string, times int) string {
		var all []string
		for range times {
			all = append(all, strconv.Itoa(get(t, client, address).status))
		}
		return strings.Join(all, " ")
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(site.BreakTimes("demo-bhd-site", ServerError, 2))
	if got := statuses(bhdAddress, 4); got != "500 500 200 200" {
		t.Errorf("twice: %s", got)
	}
	must(site.Break("banreservas-json", TooMany))
	if got := statuses("https://www.banreservas.com/", 2); got != "200 200" {
		t.Errorf("another page of the host: %s", got)
	}
	must(site.Break("www.banreservas.com", Forbidden))
	if got := statuses("https://www.banreservas.com/", 2); got != "403 403" {
		t.Errorf("the host: %s", got)
	}
	address := "https://www.banreservas.com/_layouts/15/SharePointAPI/ObtenerTasas.ashx"
	r := get(t, client, address)
	if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "2" {
		t.Errorf("the source has its own fault: %d", r.status)
	}
	site.Mend("www.banreservas.com")
	site.Mend("banreservas-json")
	if got := statuses(address, 2); got != "200 200" {
		t.Errorf("mended: %s", got)
	}
	for _, bad := range [][2]string{{"nobody-site", "hang"}, {"bhd-site", "rain"}} {
		if err := site.Break(bad[0], Fault(bad[1])); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
	if fault, err := ReadFault("half"); err != nil || fault != Half {
		t.Errorf("half is %q, %v", fault, err)
	}
}

// TestFaults_OfTheWay wants what no document can show: certificates, redirects, sizes, silence.
func TestFaults_OfTheWay(t *testing.T) {
	site := open(t, SiteConfig{Pace: time.Millisecond})
	breakIt := func(fault Fault) {
		t.Helper()
		if err := site.Break("bhd-site", fault); err != nil {
			t.Fatal(err)
		}
	}
	client := visitor(t, site)
	get(t, client, bhdAddress) // a connection that is kept must not hide a broken certificate
	for fault, wanted := range map[Fault]any{
		WrongName: new(x509.HostnameError), Expired: new(x509.CertificateInvalidError), UnknownSigner: new(x509.UnknownAuthorityError),
	} {
		breakIt(fault)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, bhdAddress, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err == nil {
			response.Body.Close()
		}
		if !errors.As(err, wanted) {
			t.Errorf("%s: %v", fault, err)
		}
		site.Mend("bhd-site")
	}
	breakIt(Redirect)
	if r := get(t, client, bhdAddress); r.status != http.StatusFound || !strings.HasPrefix(r.header.Get("Location"), "https://"+otherHost) {
		t.Errorf("%d to %s", r.status, r.header.Get("Location"))
	}
	breakIt(RedirectLoop)
	if r := get(t, client, bhdAddress); r.header.Get("Location") != bhdAddress {
		t.Errorf("%d to %s", r.status, r.header.Get("Location"))
	}
	breakIt(Trickle)
	if body := get(t, client, bhdAddress).body; !bytes.Contains(body, []byte("sellingRate")) {
		t.Errorf("trickled %s", body)
	}
	for _, fault := range []Fault{Hang, HangBody} {
		breakIt(fault)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, bhdAddress, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err == nil {
			_, err = io.ReadAll(response.Body)
			response.Body.Close()
		}
		if cancel(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", fault, err)
		}
	}
}

// TestFaults_Sizes counts what is sent and what it unpacks to.
func TestFaults_Sizes(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine makes hundreds of megabytes: without the race detector")
	}
	market := NewMarket(1)
	market.Step(noon())
	site := NewSite(SiteConfig{Market: market})
	body := site.Document("bhd-site", 0).Body
	w := &slowly{header: http.Header{}}
	huge(w, document{contentType: contentJSON, body: body})
	if w.bytes < hugeBytes || w.bytes > hugeBytes+chunkBytes {
		t.Errorf("%d bytes", w.bytes)
	}
	w = &slowly{header: http.Header{}}
	site.bomb(w, document{contentType: contentJSON, body: body})
	if w.bytes > 12<<20 || w.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%d bytes, packed as %q", w.bytes, w.header.Get("Content-Encoding"))
	}
	book := site.Document("bcrd-usd", 0)
	if got := swollen(book.Body); len(got) > 1<<20 || !bytes.HasPrefix(got, []byte("PK")) {
		t.Errorf("the workbook has %d bytes", len(got))
	}
	if got := swollen([]byte("no workbook")); string(got) != "no workbook" {
		t.Errorf("got %q", got)
	}
}

// TestFaults_Time wants the old document to stay what it was, and dates that lie ahead.
func TestFaults_Time(t *testing.T) {
	site := open(t, SiteConfig{})
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
	ahead := NewSite(SiteConfig{Market: early})
	if err := ahead.Break("bdi-site", Frozen); err != nil {
		t.Fatal(err)
	}
	early.Step(noon())
	if body := ahead.Document("bdi-site", 0).Body; !bytes.Contains(body, []byte("Actualizado: 20/09/2026 12:00")) {
		t.Error("frozen before the market began, it is not of the day before the first answer")
	}
	ids := []string{"bcrd-reference", "bcrd-usd", "bcrd-currencies", "bdi-site", "lafise-site", "banesco-site"}
	for _, id := range ids {
		today := day(id)
		if err := site.Break(id, FutureDate); err != nil {
			t.Fatal(err)
		}
		if ahead := day(id); ahead != today+aheadDays {
			t.Errorf("%s: %s, ahead of %s", id, ahead, today)
		}
		if err := site.Break(id, Frozen); err != nil {
			t.Fatal(err)
		}
		old, bytesThen := day(id), site.Document(id, 0).Body
		site.market.Step(site.market.look().at.AddDate(0, 0, 1))
		if old >= today || !bytes.Equal(bytesThen, site.Document(id, 0).Body) {
			t.Errorf("%s: %s is no older than %s, or it moves", id, old, today)
		}
		site.Mend(id)
	}
}

// TestFaults_AreAllInTheList holds the list against the constants, of which the compiler keeps no list.
func TestFaults_AreAllInTheList(t *testing.T) {
	all := Faults()
	if len(all) != 30 || len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) {
		t.Errorf("%d faults: %v", len(all), all)
	}
}

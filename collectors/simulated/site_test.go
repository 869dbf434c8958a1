package simulated

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/fetch"
	"github.com/tasard/tasard/collectors/source"
)

const bhdAddress = "http://backend.bhd.com.do/api/modal-cambio-rate?populate=deep"

// TestSite_CloseEndsHangs wants Close to end answers that would never end, and to wait for them.
func TestSite_CloseEndsHangs(t *testing.T) {
	site := NewSite(publishedSite().market)
	must(t, site.Start())
	must(t, site.SetFault("bhd-site", Hang))
	arrived := make(chan struct{}, 1)
	next := site.server.Handler
	site.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		next.ServeHTTP(w, r)
	})
	transport := &http.Transport{DialContext: site.Dial}
	var reading sync.WaitGroup
	reading.Go(func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, bhdAddress, nil)
		if err == nil {
			var response *http.Response
			if response, err = transport.RoundTrip(r); err == nil {
				response.Body.Close()
				t.Error("it does not hang")
			}
		}
	})
	<-arrived
	must(t, site.Close())
	reading.Wait()
	transport.CloseIdleConnections()
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

func client(t *testing.T, site *Site, budget time.Duration) *fetch.Client {
	t.Helper()
	return fetch.New(fetch.Config{Clock: noon, Dial: site.Dial, Pause: -1, RequestTimeout: budget, FetchTimeout: budget})
}

// TestSite_DocumentIsWhatIsServed: the program's own client, with second steps and addresses that a page names, gets
// the bytes that tests see without a network.
func TestSite_DocumentIsWhatIsServed(t *testing.T) {
	site := startSite(t, publishedSite().market)
	c, served := client(t, site, 30*time.Second), 0
	for _, d := range Definitions(source.DefaultSet()).Definitions() {
		for page := range d.Pages {
			if d.Disabled != "" {
				continue
			}
			got, err := c.Fetch(t.Context(), d, page)
			if err != nil {
				t.Errorf("%s, page %d: %v", d.ID, page, err)
				continue
			}
			want := site.Document(d.ID, page)
			if !bytes.Equal(got.Body, want.Body) || got.ContentType != want.ContentType {
				t.Errorf("%s, page %d: %d bytes of %s, want %d of %s", d.ID, page, len(got.Body), got.ContentType, len(want.Body), want.ContentType)
			}
			served++
		}
	}
	t.Logf("%d documents", served)
}

// TestFaults_AreTold wants each fault to come out as the failure that it is, from a page, a service and a workbook.
func TestFaults_AreTold(t *testing.T) {
	site := startSite(t, publishedSite().market)
	demo := Definitions(source.DefaultSet())
	page, service, book := "bdi-site", "bhd-site", "bcrd-usd"
	tests := []struct {
		fault Fault
		on    []string
		kinds []source.FailureKind
	}{
		{Layout, []string{page, service}, []source.FailureKind{source.Layout}},
		{Challenge, []string{page, service}, []source.FailureKind{source.Blocked}},
		{Challenge, []string{book}, []source.FailureKind{source.Blocked, source.WrongContent}},
		{Forbidden, []string{page, service, book}, []source.FailureKind{source.Blocked}},
		{EmptyBody, []string{page, service, book}, []source.FailureKind{source.Empty}},
		{Half, []string{page, service, book}, []source.FailureKind{source.WrongContent}},
		{ErrorPage, []string{service, book}, []source.FailureKind{source.WrongContent}},
		{ErrorPage, []string{page}, []source.FailureKind{source.Layout}},
		{Zeros, []string{page, service}, []source.FailureKind{source.Empty}},
		{NotAvailable, []string{page, service}, []source.FailureKind{source.Empty, source.Value}},
		{Hang, []string{service}, []source.FailureKind{source.Timeout}},
	}
	for _, test := range tests {
		for _, id := range test.on {
			d, _ := demo.Find(demoPrefix + id)
			must(t, site.SetFault(id, test.fault))
			budget := 30 * time.Second
			if test.fault == Hang {
				budget = 300 * time.Millisecond // nothing comes
			}
			var failure *source.Failure
			document, err := client(t, site, budget).Fetch(t.Context(), d, 0)
			if err == nil {
				_, err = d.Parse(0, document)
			}
			if !errors.As(err, &failure) || !slices.Contains(test.kinds, failure.Kind) {
				t.Errorf("%s of %s: %v, want %v", test.fault, id, err, test.kinds)
			}
			must(t, site.SetFault(id, ""))
		}
	}
	for _, bad := range [][2]string{{"unknown-site", "hang"}, {"bhd-site", "rain"}} {
		if err := site.SetFault(bad[0], Fault(bad[1])); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

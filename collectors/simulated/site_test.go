package simulated

import (
	"bytes"
	"net/http"
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

package simulated

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/fetch"
	"github.com/tasard/tasard/collectors/source"
)

// collector is the client of the program, with the site for its network. Bounds are short where nothing has to arrive.
func collector(t *testing.T, site *Site, budget time.Duration) *fetch.Client {
	t.Helper()
	client := fetch.New(fetch.Config{
		Clock: noon, UserAgent: "tasard/test (+https://github.com/tasard/tasard)", Dial: site.Dial, Roots: site.Roots(), Pause: -1,
		RequestMax: budget, BudgetMax: budget,
	})
	t.Cleanup(func() { client.Close() })
	return client
}

// TestSite_IsCollected goes the whole way with the program's own client: cookies, second steps, certificates, packing.
func TestSite_IsCollected(t *testing.T) {
	site := open(t, SiteConfig{})
	client := collector(t, site, 30*time.Second)
	for _, d := range Definitions(source.DefaultSet()).Definitions() {
		if d.Disabled != "" {
			continue
		}
		var failed error
		got, err := readings(d, func(page int) *source.Document {
			document, err := client.Fetch(t.Context(), d, page)
			if err != nil {
				failed = err
				return nil
			}
			return document
		})
		if err = errors.Join(failed, err); err != nil {
			t.Errorf("%s: %v", d.ID, err)
			continue
		}
		if wrong := differences(got, expected(site.market, d)); wrong != "" {
			t.Errorf("%s:\n%s", d.ID, wrong)
		}
	}
	for _, visit := range site.Visits() {
		if visit.Together != 1 || !slices.Equal(visit.UserAgents, []string{"tasard/test (+https://github.com/tasard/tasard)"}) {
			t.Errorf("%s saw %d at once, as %q", visit.Host, visit.Together, visit.UserAgents)
		}
	}
}

// TestFaults_AreTold wants each fault to come out as the failure that it is, from a page, a service and a workbook.
func TestFaults_AreTold(t *testing.T) {
	site := open(t, SiteConfig{})
	page, service, book := "bdi-site", "bhd-site", "bcrd-usd"
	tests := []struct {
		fault Fault
		on    []string
		kinds []source.FailureKind
	}{
		{Layout, []string{page, service, book}, []source.FailureKind{source.Layout}},
		{Challenge, []string{page, service}, []source.FailureKind{source.Blocked}},
		{Challenge, []string{book}, []source.FailureKind{source.Blocked, source.WrongContent}},
		{Forbidden, []string{page, service, book}, []source.FailureKind{source.Blocked}},
		{EmptyBody, []string{page, service, book}, []source.FailureKind{source.Empty}},
		{Half, []string{page, service, book}, []source.FailureKind{source.WrongContent}},
		{ErrorPage, []string{service, book}, []source.FailureKind{source.WrongContent}},
		{ErrorPage, []string{page}, []source.FailureKind{source.Layout}},
		{Zeros, []string{page, service}, []source.FailureKind{source.Empty}},
		{NotAvailable, []string{page, service}, []source.FailureKind{source.Empty, source.Value}},
		{ServerError, []string{page, service, book}, []source.FailureKind{source.HTTPStatus}},
		{TooMany, []string{page, service}, []source.FailureKind{source.HTTPStatus}},
		{Hang, []string{page, service, book}, []source.FailureKind{source.Timeout}},
		{HangBody, []string{page, service, book}, []source.FailureKind{source.Timeout}},
		{Trickle, []string{page, service}, []source.FailureKind{source.Timeout}},
		{Redirect, []string{page, service, book}, []source.FailureKind{source.HTTPStatus}},
		{RedirectLoop, []string{page, service, book}, []source.FailureKind{source.HTTPStatus}},
		{Bomb, []string{page, service}, []source.FailureKind{source.WrongContent}},
		{Huge, []string{page, service, book}, []source.FailureKind{source.WrongContent}},
		{WrongName, []string{page, service, book}, []source.FailureKind{source.TLS}},
		{Expired, []string{page, service, book}, []source.FailureKind{source.TLS}},
		{UnknownSigner, []string{page, service, book}, []source.FailureKind{source.TLS}},
	}
	for _, test := range tests {
		for _, id := range test.on {
			d, _ := source.DefaultSet().Find(id)
			if err := site.Break(id, test.fault); err != nil {
				t.Fatal(err)
			}
			budget := 20 * time.Second
			if slices.Contains([]Fault{Hang, HangBody, Trickle, ServerError, TooMany}, test.fault) {
				budget = time.Second // nothing comes, or only the same again
			}
			var failure *source.Failure
			err := once(t.Context(), collector(t, site, budget), d)
			if !errors.As(err, &failure) || !slices.Contains(test.kinds, failure.Kind) {
				t.Errorf("%s of %s: %v, want %v", test.fault, id, err, test.kinds)
			}
			site.Mend(id)
		}
	}
}

// once fetches and reads the first page.
func once(ctx context.Context, client *fetch.Client, d *source.Definition) error {
	document, err := client.Fetch(ctx, d, 0)
	if err == nil {
		_, err = d.Parse(0, document)
	}
	return err
}

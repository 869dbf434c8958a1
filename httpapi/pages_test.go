package httpapi

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// onePage answers every question about rates with the same page.
type onePage struct {
	*fakeService
	page *engine.Page[*engine.Rate]
}

func (s onePage) Rates(engine.RatesQuery) (*engine.Page[*engine.Rate], error)     { return s.page, nil }
func (s onePage) Ranking(engine.RankingQuery) (*engine.Page[*engine.Rate], error) { return s.page, nil }

// TestPageMemo_FormsOfOnePage: a page that answers several questions gives each its own form.
func TestPageMemo_FormsOfOnePage(t *testing.T) {
	f := newFixture(t, nil)
	page := must(f.service.Ranking(engine.RankingQuery{Filter: engine.Filter{Currency: "USD"}, Operation: engine.Buy, PageRequest: engine.PageRequest{Limit: 100}}))
	f.server.config.Service = onePage{f.service, page}
	for _, round := range []string{"first", "second"} {
		if list := f.get(t, "/v1/rates").list(t); list.Operation != "" {
			t.Errorf("%s: rates echo %q", round, list.Operation)
		}
		for _, operation := range []string{"buy", "sell"} {
			if list := f.get(t, "/v1/rates/best?currency=USD&operation="+operation).list(t); list.Operation != operation {
				t.Errorf("%s: best echoes %q, want %q", round, list.Operation, operation)
			}
			list := f.get(t, "/v1/convert?currency=USD&amount=1&operation="+operation).list(t)
			if list.Data[0]["operation"] != operation {
				t.Errorf("%s: convert gives %v, want %q", round, list.Data[0]["operation"], operation)
			}
		}
	}
}

// TestPageMemo_Concurrency: many ask for one page while the second turns; each answer is whole, and equal in both
// codings.
func TestPageMemo_Concurrency(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	const workers = 8
	stamp := regexp.MustCompile(`"generatedAt":"[^"]*"`)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for round := range sampledOrWhole(20, 60) {
				if worker == 0 {
					f.clock.set(fakeNow().Add(time.Duration(round) * 300 * time.Millisecond))
				}
				for _, target := range []string{"/v1/rates", bestTarget, "/v1/convert?currency=USD&operation=buy&amount=" + strconv.Itoa(round)} {
					a := f.get(t, target, "Accept-Encoding: "+[]string{"gzip", "identity"}[worker%2])
					body := a.plain(t)
					plain := f.get(t, target).body
					if !json.Valid(body) || !bytes.Equal(stamp.ReplaceAll(body, nil), stamp.ReplaceAll(plain, nil)) {
						t.Errorf("%s: %s, want %s", target, body, plain)
					}
				}
			}
		})
	}
	group.Wait()
}

func TestRequestIDs(t *testing.T) {
	ids := RequestIDs(7)
	var all sync.Map
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 1000 {
				id := ids()
				if _, repeated := all.LoadOrStore(id, true); repeated || strings.Trim(string(id[:]), "0123456789abcdef") != "" {
					t.Errorf("the id %s", id)
				}
			}
		})
	}
	group.Wait()
	if _, known := all.Load(RequestIDs(7)()); !known {
		t.Error("the ids do not follow from the seed")
	}
	if _, known := all.Load(RequestIDs(8)()); known {
		t.Error("another seed has the same ids")
	}
}

// TestP5_GeneratedAt: whole seconds in UTC, the present one, in every form of every page.
func TestP5_GeneratedAt(t *testing.T) {
	for operation, target := range goldenTargets() {
		if operation == "currencies" || operation == "institution" {
			continue
		}
		f := newFixture(t, nil)
		for _, step := range []time.Duration{0, 999 * time.Millisecond, time.Second, 3 * time.Second, time.Second, 26 * time.Hour} {
			f.clock.set(fakeNow().Add(step))
			want := fakeNow().Add(step).Truncate(time.Second).Format(time.RFC3339)
			for _, coding := range []string{"identity", "gzip"} {
				list := f.get(t, target, "Accept-Encoding: "+coding).list(t)
				if list.Meta.GeneratedAt != want || list.Meta.QuoteCurrency != "DOP" {
					t.Errorf("%s, %s, after %v: %s, want %s", operation, coding, step, list.Meta.GeneratedAt, want)
				}
			}
		}
	}
}

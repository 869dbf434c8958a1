package collectors

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// quote is an observation without a date.
func quote(institution, currency, buy string) engine.Observation {
	return engine.Observation{InstitutionID: institution, Currency: currency, Buy: buy, Document: "d1"}
}

func saying(observations ...engine.Observation) source.Answer {
	return source.Answer{Observations: observations}
}

// TestI3_CompleteWhereEveryPageAnswered: an answer is complete exactly in the currencies of which every page answered.
func TestI3_CompleteWhereEveryPageAnswered(t *testing.T) {
	usd, eur := source.Page{Currency: "USD"}, source.Page{Currency: "EUR"}
	fields := source.Page{Extract: source.Extract{Fields: []source.Field{{Currency: "USD"}, {Currency: "EUR"}}}}
	rows := source.Page{Extract: source.Extract{Rows: &source.Rows{Labels: map[string]source.Target{"dolar": {Currency: "USD"}}}}}
	text := source.Page{Extract: source.Extract{Text: &source.Text{Labels: map[string]source.Target{"euro": {Currency: "EUR"}}}}}
	saidUSD, saidEUR := saying(quote("popular", "USD", "58")), saying(quote("popular", "EUR", "68"))
	for _, c := range []struct {
		name     string
		pages    []source.Page
		answers  []source.Answer
		complete map[string]bool // by currency that was said
	}{
		{"one page", []source.Page{usd}, []source.Answer{saidUSD}, map[string]bool{"USD": true}},
		{"both pages", []source.Page{usd, eur}, []source.Answer{saidUSD, saidEUR}, map[string]bool{"USD": true, "EUR": true}},
		{"a page of another currency failed", []source.Page{usd, eur}, []source.Answer{saidUSD, {}}, map[string]bool{"USD": true}},
		{"a page of fields failed", []source.Page{usd, fields}, []source.Answer{saidUSD, {}}, map[string]bool{"USD": false}},
		{"a page of rows failed", []source.Page{usd, rows}, []source.Answer{saidUSD, {}}, map[string]bool{"USD": false}},
		{"a page of text failed", []source.Page{usd, eur, text}, []source.Answer{saidUSD, saidEUR, {}}, map[string]bool{"USD": true, "EUR": false}},
		{"only history is an answer too", []source.Page{usd, usd}, []source.Answer{saidUSD, {History: []source.Day{
			{Date: dateOf("2026-09-17"), Observations: []engine.Observation{quote("popular", "USD", "57")}},
		}}}, map[string]bool{"USD": true}},
		{"fewer answers than pages", []source.Page{usd, eur}, []source.Answer{saidUSD}, map[string]bool{"USD": false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, slot := santoDomingo(2026, 9, 18, 8, 2, 0), santoDomingo(2026, 9, 18, 8, 0, 0)
			got := map[string]bool{}
			for _, refresh := range Refreshes(&source.Definition{ID: "popular-site", Pages: c.pages}, c.answers, at, slot) {
				if refresh.Slot.IsZero() {
					continue
				}
				if !refresh.Slot.Equal(slot) || !refresh.ObservedAt.Equal(at) || refresh.SourceID != "popular-site" {
					t.Errorf("refresh of now: %+v", refresh)
				}
				for _, o := range refresh.Observations {
					if _, doubled := got[o.Currency]; doubled {
						t.Errorf("%s stands in two refreshes, of which the engine would hear one", o.Currency)
					}
					got[o.Currency] = refresh.Complete
				}
			}
			if !reflect.DeepEqual(got, c.complete) {
				t.Errorf("complete: %v, want %v", got, c.complete)
			}
		})
	}
}

// TestRefreshes_History wants days in their order, each at its own end but never in the future, and the answers as they were.
func TestRefreshes_History(t *testing.T) {
	d := usdSource("bcrd-usd", "bcrd")
	d.Pages = append(d.Pages, d.Pages[0])
	d.Expiry.AfterDate = 120 * time.Hour
	today := dateOf("2026-09-18")
	past := func(days int) source.Day {
		return source.Day{Date: today.AddDays(-days), Observations: []engine.Observation{quote("bcrd", "USD", fmt.Sprint(57, days))}}
	}
	stated := quote("bcrd", "USD", "59")
	stated.EffectiveDate, stated.ExpiresAt = today, santoDomingo(2026, 9, 18, 20, 0, 0)
	answers := []source.Answer{
		{History: []source.Day{past(2), past(0), {}}, Observations: []engine.Observation{stated}}, {History: []source.Day{past(3), past(2)}},
	}
	before := fmt.Sprintf("%+v", answers)
	at := santoDomingo(2026, 9, 18, 17, 1, 0)
	refreshes := Refreshes(d, answers, at, santoDomingo(2026, 9, 18, 17, 0, 0))
	if after := fmt.Sprintf("%+v", answers); after != before {
		t.Errorf("the answers were changed:\n%s\n%s", before, after)
	}
	for i, want := range []struct {
		at, expires time.Time
		values      int
	}{
		{santoDomingo(2026, 9, 15, 23, 59, 59), santoDomingo(2026, 9, 17, 1, 59, 59), 1},
		{santoDomingo(2026, 9, 16, 23, 59, 59), santoDomingo(2026, 9, 18, 1, 59, 59), 2},
		{at, at.Add(26 * time.Hour), 1}, // the end of today has not come yet
		{at, stated.ExpiresAt, 1},
	} {
		got := refreshes[i]
		if !got.ObservedAt.Equal(want.at) || len(got.Observations) != want.values || !got.Observations[0].ExpiresAt.Equal(want.expires) {
			t.Errorf("refresh %d: %+v, want %d values at %v until %v", i, got, want.values, want.at, want.expires)
		}
		if history := i < 3; history != got.Slot.IsZero() || history == got.Complete {
			t.Errorf("refresh %d: slot %v, complete %v", i, got.Slot, got.Complete)
		}
		for _, o := range got.Observations {
			if o.Document != "d1" || o.EffectiveDate.IsZero() {
				t.Errorf("refresh %d: %+v lost its document or its day", i, o)
			}
		}
	}
	if len(refreshes) != 4 {
		t.Errorf("%d refreshes, want 4", len(refreshes))
	}
}

// TestT3_ExpiryByDefinition wants the earlier of both ends.
func TestT3_ExpiryByDefinition(t *testing.T) {
	d := usdSource("bdi-site", "bdi")
	d.Expiry = source.Expiry{AfterCheck: 98 * time.Hour, AfterDate: 120 * time.Hour}
	at := santoDomingo(2026, 9, 18, 8, 0, 0)
	for date, want := range map[string]time.Time{
		"":           at.Add(98 * time.Hour),
		"2026-09-18": at.Add(98 * time.Hour),
		"2026-09-14": santoDomingo(2026, 9, 20, 0, 0, 0), // five days after the end of the 14th
		"2022-07-19": santoDomingo(2022, 7, 25, 0, 0, 0), // frozen: expired before it was read
	} {
		o := quote("bdi", "USD", "58")
		if date != "" {
			o.EffectiveDate = dateOf(date)
		}
		if got := Refreshes(d, []source.Answer{saying(o)}, at, at)[0].Observations[0].ExpiresAt; !got.Equal(want) {
			t.Errorf("effective %q: until %v, want %v", date, got, want)
		}
	}
}

func TestRecent(t *testing.T) {
	at := santoDomingo(2026, 9, 18, 20, 30, 0) // the 19th in UTC
	answers := []source.Answer{{History: []source.Day{{Date: dateOf("2026-09-15")}, {Date: dateOf("2026-09-16")}, {Date: dateOf("2026-09-17")}}}}
	for days, want := range map[int]int{0: 3, 1: 1, 2: 2, 45: 3} {
		if got := recent(answers, days, at)[0].History; len(got) != want {
			t.Errorf("%d days: %v, want %d", days, got, want)
		}
	}
	if len(answers[0].History) != 3 {
		t.Error("the answers were changed")
	}
}

// TestHanding: a later try hands over what is new, once, and no half of a quote whose other half may stand on a silent page (I4).
func TestHanding(t *testing.T) {
	slot := santoDomingo(2026, 9, 18, 8, 0, 0)
	whole := func(institution, currency string) engine.Observation {
		o := quote(institution, currency, "58.10")
		o.Sell = "59.30"
		return o
	}
	half := quote("empire", "USD", "58.20")
	history := engine.Refresh{SourceID: "s", Observations: []engine.Observation{half}}
	refresh := func(complete bool, observations ...engine.Observation) engine.Refresh {
		return engine.Refresh{SourceID: "s", Slot: slot, Complete: complete, Observations: observations}
	}
	after := engine.Refresh{SourceID: "s", Observations: []engine.Observation{whole("bhd", "USD")}}
	for name, c := range map[string]struct {
		said  []engine.Refresh
		heard map[string]bool
		late  []source.Answer
		want  []engine.Refresh
	}{
		"the first try": {
			said: []engine.Refresh{history, refresh(true, whole("bhd", "USD"), half), refresh(false, whole("bhd", "EUR"))},
			want: []engine.Refresh{history, refresh(true, whole("bhd", "USD"), half), refresh(false, whole("bhd", "EUR"))},
		},
		"half a quote while a page is silent": {
			said: []engine.Refresh{refresh(false, half, whole("bhd", "USD"))}, want: []engine.Refresh{refresh(false, whole("bhd", "USD"))},
		},
		"nothing but halves": {said: []engine.Refresh{refresh(false, half)}},
		"another currency later": {
			said: []engine.Refresh{refresh(true, whole("bhd", "USD"), whole("bhd", "EUR"))}, heard: map[string]bool{"USD": true},
			late: []source.Answer{{}, saying(whole("bhd", "EUR"))}, want: []engine.Refresh{refresh(true, whole("bhd", "EUR"))},
		},
		"the same currency later": {
			said: []engine.Refresh{refresh(true, whole("popular", "USD"), whole("bhd", "USD"))}, heard: map[string]bool{"USD": true},
			late: []source.Answer{{}, saying(whole("bhd", "USD"))}, want: []engine.Refresh{after},
		},
	} {
		if got := handing(c.said, c.heard, c.late); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, c.want)
		}
	}
}

// TestT2_DailySlots looks at thirty years: the slots are those that clients are told, and each is past once it has come.
func TestT2_DailySlots(t *testing.T) {
	schedule, slot := Daily(), santoDomingo(2001, time.January, 1, 8, 0, 0)
	for i := 0; slot.Year() < 2031; i++ {
		if want := []int{12, 16, 21}[i%3]; slot.Hour() != want || slot.Minute() != 0 || slot.Second() != 0 || slot.Location() != time.UTC {
			t.Fatalf("slot %d is %v", i, slot) // 08:00, 12:00, 17:00 in Santo Domingo, which has no summer time
		}
		next := engine.NextRefresh(slot)
		for _, at := range []time.Time{slot, slot.Add(next.Sub(slot) / 3), next.Add(-time.Nanosecond)} {
			if !schedule.Last(at).Equal(slot) || !schedule.Next(at).Equal(next) {
				t.Fatalf("at %v: Last %v, Next %v; want %v, %v", at, schedule.Last(at), schedule.Next(at), slot, next)
			}
		}
		slot = next
	}
}

func TestEvery(t *testing.T) {
	schedule := Every(10 * time.Second)
	at := time.Date(2026, 9, 18, 12, 0, 7, 5, time.FixedZone("", 3600))
	if got, want := schedule.Last(at), time.Date(2026, 9, 18, 11, 0, 0, 0, time.UTC); !got.Equal(want) || got.Location() != time.UTC {
		t.Errorf("Last = %v, want %v", got, want)
	}
	if got, want := schedule.Next(at), time.Date(2026, 9, 18, 11, 0, 10, 0, time.UTC); !got.Equal(want) {
		t.Errorf("Next = %v, want %v", got, want)
	}
	if slot := schedule.Last(at); !schedule.Last(slot).Equal(slot) || !schedule.Next(slot).After(slot) {
		t.Errorf("a slot is its own Last, and never its own Next: %v", slot)
	}
	defer func() {
		if recover() == nil {
			t.Error("Every(0) made a schedule")
		}
	}()
	Every(0)
}

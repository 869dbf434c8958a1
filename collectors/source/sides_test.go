package source_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

func TestSidesOfOneQuoteAreJoined(t *testing.T) {
	quote := func(institution, currency, buy, sell string) engine.Observation {
		return engine.Observation{InstitutionID: institution, Currency: currency, Buy: buy, Sell: sell}
	}
	cash := quote("empire", "USD", "", "60")
	cash.Channel = engine.Cash
	dated := quote("empire", "USD", "", "60")
	dated.EffectiveDate = date(t, "2026-11-20")
	for name, test := range map[string]struct{ said, want []engine.Observation }{
		"two pages": {
			[]engine.Observation{quote("empire", "USD", "58", ""), quote("empire", "EUR", "66", ""), quote("empire", "USD", "", "60")},
			[]engine.Observation{quote("empire", "USD", "58", "60"), quote("empire", "EUR", "66", "")},
		},
		"whole ones stay":         {[]engine.Observation{quote("a", "USD", "58", "60"), quote("a", "USD", "58", "60")}, nil},
		"one side twice stays":    {[]engine.Observation{quote("a", "USD", "58", ""), quote("a", "USD", "59", "")}, nil},
		"others stay apart":       {[]engine.Observation{quote("a", "USD", "58", ""), quote("b", "USD", "", "60")}, nil},
		"channels stay apart":     {[]engine.Observation{quote("empire", "USD", "58", ""), cash}, nil},
		"days stay apart":         {[]engine.Observation{quote("empire", "USD", "58", ""), dated}, nil},
		"a third one stays alone": {[]engine.Observation{quote("a", "USD", "58", ""), quote("a", "USD", "58", "60"), quote("a", "USD", "", "")}, nil},
	} {
		want := test.want
		if want == nil {
			want = test.said
		}
		before := slices.Clone(test.said)
		if got := source.JoinSides(test.said); !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if !slices.Equal(before, test.said) {
			t.Errorf("%s: what was given has changed", name)
		}
	}
}

// A source that says each side on a page of its own is one answer, whose quotes are whole.
func TestPagesOfSidesAreOneAnswer(t *testing.T) {
	d, _ := source.DefaultSet().Find("empire-site")
	answers := make([]source.Answer, len(d.Pages))
	for page, body := range []string{"58.10\r\n", "60.20\n", " 66.30", "70.40"} {
		answer, err := d.Parse(page, &source.Document{Body: []byte(body), ContentType: "text/plain"})
		if err != nil {
			t.Fatal(err)
		}
		answers[page] = answer
	}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	refreshes := collectors.Refreshes(d, answers, at, at)
	if len(refreshes) != 1 || len(refreshes[0].Observations) != 2 || !refreshes[0].Complete {
		t.Fatalf("got %+v, want one complete refresh with two quotes", refreshes)
	}
	dollar, euro := refreshes[0].Observations[0], refreshes[0].Observations[1]
	if dollar.Buy != "58.10" || dollar.Sell != "60.20" || euro.Buy != "66.30" || euro.Sell != "70.40" {
		t.Errorf("got %+v and %+v", dollar, euro)
	}
}

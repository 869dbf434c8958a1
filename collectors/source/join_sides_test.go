package source

import (
	"slices"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

func TestSidesOfOneQuoteAreJoined(t *testing.T) {
	quote := func(institution, currency, buy, sell string) engine.Observation {
		return engine.Observation{InstitutionID: institution, Currency: currency, Buy: buy, Sell: sell}
	}
	cash := quote("empire", "USD", "", "60")
	cash.Channel = engine.Cash
	dated := quote("empire", "USD", "", "60")
	dated.EffectiveDate = engine.DateOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	for name, test := range map[string]struct{ said, want []engine.Observation }{
		"two pages": {
			[]engine.Observation{quote("empire", "USD", "58", ""), quote("empire", "EUR", "66", ""), quote("empire", "USD", "", "60")},
			[]engine.Observation{quote("empire", "USD", "58", "60"), quote("empire", "EUR", "66", "")},
		},
		"whole ones stay":          {[]engine.Observation{quote("a", "USD", "58", "60"), quote("a", "USD", "58", "60")}, nil},
		"one side twice stays":     {[]engine.Observation{quote("a", "USD", "58", ""), quote("a", "USD", "59", "")}, nil},
		"others stay apart":        {[]engine.Observation{quote("a", "USD", "58", ""), quote("b", "USD", "", "60")}, nil},
		"channels stay apart":      {[]engine.Observation{quote("empire", "USD", "58", ""), cash}, nil},
		"days stay apart":          {[]engine.Observation{quote("empire", "USD", "58", ""), dated}, nil},
		"a third one stays single": {[]engine.Observation{quote("a", "USD", "58", ""), quote("a", "USD", "58", "60"), quote("a", "USD", "", "")}, nil},
	} {
		want := test.want
		if want == nil {
			want = test.said
		}
		before := slices.Clone(test.said)
		if got := JoinSides(test.said); !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if !slices.Equal(before, test.said) {
			t.Errorf("%s: what was given has changed", name)
		}
	}
}

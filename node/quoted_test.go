package node

import (
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

type acceptingSink struct{}

func (acceptingSink) Observe([]engine.Refresh) (engine.Receipt, error) { return engine.Receipt{}, nil }

// TestQuotedTexts: a rate has the texts from which it was read, and not those of another time, source or channel.
func TestQuotedTexts(t *testing.T) {
	q, at := newQuotedTexts(acceptingSink{}), time.Unix(1_800_000_000, 0)
	o := engine.Observation{InstitutionID: "bhd", Currency: "USD", Buy: "58.20", Sell: "59.20", BuyText: `"RD$ 58.20"`, SellText: `"59,20"`, Document: "3fa9"}
	for _, observedAt := range []time.Time{at, at.Add(-time.Hour)} { // an older refresh replaces nothing
		if _, err := q.Observe([]engine.Refresh{{SourceID: "bhd-site", ObservedAt: observedAt, Observations: []engine.Observation{o}}}); err != nil {
			t.Fatal(err)
		}
	}
	rate := engine.Rate{InstitutionID: "bhd", Currency: "USD", Channel: engine.Unspecified, Kind: engine.Commercial, SourceID: "bhd-site", LastCheckedAt: at}
	for _, q.archived = range []bool{false, true} {
		if buy, sell, document := q.quoted(&rate); buy != o.BuyText || sell != o.SellText || (document == o.Document) != q.archived {
			t.Errorf("archived %v: %s %s %s", q.archived, buy, sell, document)
		}
	}
	for name, change := range map[string]func(*engine.Rate){
		"time":    func(r *engine.Rate) { r.LastCheckedAt = at.Add(time.Second) },
		"source":  func(r *engine.Rate) { r.SourceID = "infodolar" },
		"channel": func(r *engine.Rate) { r.Channel = engine.Digital },
	} {
		other := rate
		change(&other)
		if buy, sell, document := q.quoted(&other); buy+sell+document != "" {
			t.Errorf("another %s: %s %s", name, buy, sell)
		}
	}
}

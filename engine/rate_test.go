package engine

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestS2_BestForTheCallerComesFirst(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57.10", "60.20"))
	f.accept("b", usd("popular", "57.30", "60.10"))
	f.accept("c", usd("caribe", "57.20", "60.30"))
	for operation, want := range map[Operation][]string{
		Buy:  {"popular/unspecified", "bhd/unspecified", "caribe/unspecified"},
		Sell: {"popular/unspecified", "caribe/unspecified", "bhd/unspecified"},
	} {
		for _, comparing := range []bool{false, true} {
			page := f.ranked(RankingQuery{Operation: operation, PageRequest: PageRequest{LimitMax, 0}, ForConvert: comparing})
			var got []string
			for _, rate := range page.Items {
				got = append(got, rate.InstitutionID+"/unspecified")
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, comparing %v: %v, want %v", operation, comparing, got, want)
			}
		}
	}
}

func TestS3_TiesAreATotalOrder(t *testing.T) {
	f := newFixture(t)
	f.accept("infodolar", usd("abonap", "57", "60.3")) // priority 200
	f.accept("q", usd("union", "57", "60.30"))
	f.accept("p", usd("bhd", "57", "60.300"))
	f.advance(time.Minute)
	f.accept("r", usd("vimenca", "57.00", "60.3")) // collected later
	branch := usd("union", "57", "60.3")
	branch.Channel = Branch
	f.accept("q", branch)
	want := []string{"union/branch", "vimenca/unspecified", "bhd/unspecified", "union/unspecified", "abonap/unspecified"}
	for _, operation := range []Operation{Buy, Sell} {
		if got := f.ranking(operation); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", operation, got, want)
		}
	}
}

func TestS4_AMissingSideIsLeftOutOfTheRanking(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("romana", "57.10", ""))
	f.accept("b", usd("capla", "", "59.10"))
	if got := f.ranking(Buy); !slices.Equal(got, []string{"capla/unspecified"}) {
		t.Errorf("buy ranks %v", got)
	}
	if got := f.ranking(Sell); !slices.Equal(got, []string{"romana/unspecified"}) {
		t.Errorf("sell ranks %v", got)
	}
	if page := f.marketView().Rates(RatesQuery{PageRequest: PageRequest{LimitMax, 0}}); page.Total != 2 {
		t.Errorf("rates has %d, want both", page.Total)
	}
	if page := f.ranked(RankingQuery{Operation: Buy, PageRequest: PageRequest{LimitMax, 0}}); page.Total != 1 {
		t.Errorf("total of the ranking is %d, want 1", page.Total)
	}
}

func reference(buy, sell string) Observation {
	o := usd("bcrd", buy, sell)
	o.Kind = Reference
	return o
}

func TestS5_BestHasNoReferenceRates(t *testing.T) {
	f := newFixture(t)
	f.accept("bcrd-reference", reference("58.9", "59.3"))
	f.accept("a", usd("bhd", "57", "60"))
	page := f.ranked(RankingQuery{Filter: Filter{Kind: Reference}, Operation: Buy, PageRequest: PageRequest{LimitMax, 0}})
	if page.Total != 0 || len(page.Items) != 0 {
		t.Errorf("best of kind reference has %d items", page.Total)
	}
	if got := f.ranking(Buy); !slices.Equal(got, []string{"bhd/unspecified"}) {
		t.Errorf("best ranks %v", got)
	}
}

func TestS6_ConvertComparesReferenceRatesWhenAsked(t *testing.T) {
	f := newFixture(t)
	f.accept("bcrd-reference", reference("58.9", "59.3"))
	f.accept("a", usd("bhd", "57", "60"))
	for kind, want := range map[Kind]string{"": "bhd", Commercial: "bhd", Reference: "bcrd"} {
		q := RankingQuery{Filter: Filter{Kind: kind}, Operation: Buy, PageRequest: PageRequest{LimitMax, 0}, ForConvert: true}
		if page := f.ranked(q); page.Total != 1 || page.Items[0].InstitutionID != want {
			t.Errorf("kind %q compares %d rates, want only %s", kind, page.Total, want)
		}
	}
	f.advance(400 * time.Hour)
	q := RankingQuery{Filter: Filter{Kind: Reference}, Operation: Buy, PageRequest: PageRequest{LimitMax, 0}, ForConvert: true}
	if page := f.ranked(q); page.Total != 0 {
		t.Errorf("an expired reference rate is compared")
	}
}

func TestS11_OneOfTheSourcesIsPublished(t *testing.T) {
	f := newFixture(t)
	f.accept("infodolar", usd("bhd", "57.00", "60.00"))
	if got := f.rate("bhd"); got.SourceID != "infodolar" || got.Priority != 200 || got.UpstreamSource != "InfoDolar" {
		t.Fatalf("published %+v, want the aggregator's while it is the only source", got)
	}
	f.accept("bhd-site", usd("bhd", "57.10", "60.10"))
	if got := f.rate("bhd"); got.SourceID != "bhd-site" || got.UpstreamSource != "" {
		t.Fatalf("published %s, want the bank's own word", got.SourceID)
	}
	f.advance(time.Hour)
	f.accept("infodolar", usd("bhd", "57.05", "60.05"))
	if got := f.rate("bhd"); got.SourceID != "bhd-site" {
		t.Fatalf("published %s: a later word of a lower precedence must not win", got.SourceID)
	}
	f.accept("manual", usd("bhd", "57.20", "60.20"))
	if got := f.rate("bhd"); !got.Manual || got.SourceID != "manual" {
		t.Fatalf("published %s, want the operator's", got.SourceID)
	}
	f.apply(Withdraw{Key: QuoteKey{"bhd", Unspecified, Commercial}, SourceID: "manual", By: "ana"})
	if got := f.rate("bhd"); got.SourceID != "bhd-site" {
		t.Fatalf("published %s after the withdrawal", got.SourceID)
	}
	f.advance(25*time.Hour + time.Minute) // the bank's own expired 26 h after its check, the aggregator's an hour later
	if got := f.rate("bhd"); got.SourceID != "infodolar" || got.Stale {
		t.Fatalf("published %s (stale %v), want the fail-over to the aggregator", got.SourceID, got.Stale)
	}
	f.advance(time.Hour)
	if got := f.rate("bhd"); got.SourceID != "infodolar" || !got.Stale {
		t.Fatalf("published %s (stale %v), want the last one to expire, as stale", got.SourceID, got.Stale)
	}
}

func TestS11_AManualRateLastsUntilItExpires(t *testing.T) {
	f := newFixture(t)
	f.accept("bhd-site", usd("bhd", "57.10", "60.10"))
	manual := usd("bhd", "57.20", "60.20")
	manual.ExpiresAt = f.now.Add(2 * time.Hour)
	f.accept("manual", manual)
	view := f.view()
	if !view.changesAt.Equal(manual.ExpiresAt) {
		t.Errorf("the view changes at %s, want the manual rate's expiry", view.changesAt)
	}
	f.advance(2 * time.Hour)
	if got := f.rate("bhd"); got.Manual || got.Stale {
		t.Errorf("published %+v, want the bank's own again", got)
	}
}

// enum is a closed list and its parser.
type enum struct {
	list  []string
	parse func(string) (string, bool)
}

func texts[T ~string](list []T) []string {
	var all []string
	for _, word := range list {
		all = append(all, string(word))
	}
	return all
}

func asText[T ~string](parse func(string) (T, bool)) func(string) (string, bool) {
	return func(text string) (string, bool) {
		word, ok := parse(text)
		return string(word), ok
	}
}

func enums() map[string]enum {
	return map[string]enum{
		"unspecified branch digital cash transfer": {texts(Channels()), asText(ParseChannel)},
		"commercial reference":                     {texts(Kinds()), asText(ParseKind)},
		"buy sell":                                 {texts(Operations()), asText(ParseOperation)},
	}
}

func TestQ3_EnumsAreByteExact(t *testing.T) {
	for contract, closed := range enums() {
		for _, word := range closed.list {
			for _, wrong := range []string{
				"", strings.ToUpper(word), strings.ToUpper(word[:1]) + word[1:], word + " ", " " + word, word[:len(word)-1], word + "s", word + "\x00",
				contract,
			} {
				if got, ok := closed.parse(wrong); ok || got != "" {
					t.Errorf("%q is read as %q", wrong, got)
				}
			}
		}
	}
}

func TestDatePrecision(t *testing.T) {
	published := time.Unix(1_780_000_000, 0)
	for _, c := range []struct {
		effective Date
		published time.Time
		want      DatePrecision
	}{
		{0, time.Time{}, PrecisionUnknown}, {1, time.Time{}, PrecisionDay}, {0, published, PrecisionDatetime}, {1, published, PrecisionDatetime},
	} {
		if got := precisionOf(c.effective, c.published); got != c.want {
			t.Errorf("date %d, published %v: %s, want %s", c.effective, c.published, got, c.want)
		}
	}
}

package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestI1_AnObservationBecomesARate(t *testing.T) {
	f := newFixture(t)
	observation := Observation{
		InstitutionID: "bdi", Currency: "USD", Channel: Digital, Kind: Commercial, Buy: "57.10", Sell: "60.05",
		EffectiveDate: DateOf(noon), PublishedAt: noon.Add(-time.Hour),
	}
	f.accept("bdi-site", observation)
	got := *f.rate("bdi")
	want := Rate{
		ID: "bdi:USD:digital:commercial", InstitutionID: "bdi", InstitutionName: got.InstitutionName, InstitutionType: Bank,
		Website: "https://www.bdi.com.do", Currency: "USD", Buy: decimalFrom("57.10"), Sell: decimalFrom("60.05"),
		Channel: Digital, Kind: Commercial, EffectiveDate: DateOf(noon), PublishedAt: noon.Add(-time.Hour),
		SourceID: "bdi-site", SourceName: got.SourceName, SourceURL: got.SourceURL, CollectedAt: noon, LastCheckedAt: noon,
		ExpiresAt: noon.Add(26 * time.Hour), Priority: 100, DatePrecision: PrecisionDatetime,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.InstitutionName == "" || got.SourceName == "" {
		t.Errorf("names are missing: %+v", got)
	}
}

func TestI2_FloatNoiseIsPublishedClean(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57.949999999999996", "60.12345678"))
	if got := f.rate("bhd"); got.Buy.String() != "57.95" || got.Sell.String() != "60.12345678" {
		t.Errorf("published %s / %s", got.Buy, got.Sell)
	}
}

// goodBanks are six institutions that agree, enough for a median.
func goodBanks() []Observation {
	var all []Observation
	for i, id := range []string{"popular", "bhd", "banreservas", "caribe", "vimenca", "promerica"} {
		all = append(all, usd(id, fmt.Sprintf("57.%d", i), fmt.Sprintf("60.%d", i)))
	}
	return all
}

func TestI3_Refusals(t *testing.T) {
	future, dated := usd("bdi", "57", "60"), usd("bdi", "57", "60")
	future.EffectiveDate, dated.EffectiveDate = DateOf(noon)+8, DateOf(noon)
	for name, c := range map[string]struct {
		reason Reason
		bad    []Observation
	}{
		"zero buy":           {Zero, []Observation{usd("bdi", "0", "60")}},
		"zero sell":          {Zero, []Observation{usd("bdi", "57", "0.00")}},
		"both zero":          {Zero, []Observation{usd("bdi", "0.0", "0")}},
		"negative":           {Negative, []Observation{usd("bdi", "-57", "60")}},
		"a negative page":    {Negative, []Observation{usd("bdi", "-"+strings.Repeat("<html>", 1000), "60")}},
		"text":               {Unparsable, []Observation{usd("bdi", "N/A", "60")}},
		"exponent":           {Unparsable, []Observation{usd("bdi", "5.7e1", "60")}},
		"not a number":       {Unparsable, []Observation{usd("bdi", "NaN", "60")}},
		"infinite":           {Unparsable, []Observation{usd("bdi", "57", "Inf")}},
		"comma":              {Unparsable, []Observation{usd("bdi", "57,10", "60")}},
		"thirty digits":      {Unparsable, []Observation{usd("bdi", "57", strings.Repeat("9", 30))}},
		"a page":             {Unparsable, []Observation{usd("bdi", strings.Repeat("<html>", 1000), "60")}},
		"no side":            {NoSide, []Observation{usd("bdi", "", "")}},
		"crossed":            {Crossed, []Observation{usd("bdi", "60", "57")}},
		"lost decimal":       {OutOfBand, []Observation{usd("bdi", "6.09", "60")}},
		"another currency":   {OutOfBand, []Observation{usd("bdi", "39.6971", "42.627")}},
		"times ten":          {OutOfBand, []Observation{usd("bdi", "570", "600")}},
		"off the market":     {OffMarket, []Observation{usd("bdi", "47", "60.5")}},
		"in the far future":  {FutureDate, []Observation{future}},
		"one side twice":     {SameSides, []Observation{usd("bdi", "58", "58")}},
		"two answers":        {Disagreement, []Observation{usd("bdi", "57", "60"), usd("bdi", "57.1", "60")}},
		"two dates":          {Disagreement, []Observation{usd("bdi", "57", "60"), dated}},
		"an answer and none": {Disagreement, []Observation{usd("bdi", "57", "60"), usd("bdi", "57", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.accept("a", goodBanks()...)
			f.refuse(c.reason, "bdi-site", c.bad...)
			if page := f.marketView().Rates(RatesQuery{Filter{Institution: "bdi"}, PageRequest{LimitMax, 0}}); page.Total != 0 {
				t.Errorf("served: %+v", *page.Items[0])
			}
			if rows := f.history("bdi"); len(rows) != 0 {
				t.Errorf("in history: %v", rows)
			}
			quarantined := f.state.Snapshot().Quarantine()
			if len(quarantined) != len(c.bad) || quarantined[0].Reason != c.reason || quarantined[0].Observation.InstitutionID != "bdi" ||
				len(quarantined[0].Observation.Buy) > sideTextMax || len(quarantined[0].Detail) > 4*sideTextMax {
				t.Errorf("quarantine holds %+v", quarantined)
			}
		})
	}
}

func TestI3_AJumpIsRefusedAndTheOldValueStays(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57", "60"))
	f.advance(5 * time.Hour)
	f.refuse(Jump, "a", usd("bhd", "57", "63.01"))
	f.accept("a", usd("bhd", "57", "63")) // exactly the limit
	if got := f.rate("bhd").Sell.String(); got != "63" {
		t.Errorf("sell is %s", got)
	}
}

func TestI3_AMissingSideIsNeverDerived(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("romana", "57", ""))
	if got := f.rate("romana"); !got.Sell.IsNull() || got.Buy.IsNull() {
		t.Errorf("published %s / %s", got.Buy, got.Sell)
	}
}

func TestI3_AThinAnswerKeepsTheOldQuotes(t *testing.T) {
	f := newFixture(t)
	whole := func(observations ...Observation) Receipt {
		return f.apply(Observe{[]Refresh{{SourceID: "list", ObservedAt: f.now, Observations: observations, Complete: true}}})
	}
	if receipt := whole(goodBanks()...); receipt.Accepted != 6 {
		t.Fatalf("%+v", receipt)
	}
	f.advance(time.Hour)
	receipt := whole(usd("popular", "57.3", "60.3"), usd("bhd", "57.3", "60.3"))
	if len(receipt.Refused) != 2 || receipt.Refused[0].Reason != ThinRefresh {
		t.Fatalf("2 of 6 quotes: %+v", receipt)
	}
	if got := f.rate("bhd"); got.Buy.String() != "57.1" {
		t.Errorf("bhd is %s", got.Buy)
	}
	if receipt := whole(goodBanks()[:3]...); receipt.Accepted != 3 {
		t.Errorf("losing exactly half is allowed: %+v", receipt)
	}
	zeros := goodBanks()
	for i := range 4 {
		zeros[i].Buy = "0"
	}
	if receipt := whole(zeros...); receipt.Accepted != 0 {
		t.Errorf("an answer with 4 zeros of 6 is thin: %+v", receipt)
	}
	if receipt := f.observe("list", usd("popular", "57.3", "60.3")); receipt.Accepted != 1 {
		t.Errorf("an incomplete answer is refused as thin: %+v", receipt)
	}
	f.advance(30 * time.Hour) // all quotes of the source have expired
	if receipt := whole(usd("popular", "57.3", "60.3")); receipt.Accepted != 1 {
		t.Errorf("there is nothing left to lose: %+v", receipt)
	}
}

func TestX5_AnImplausibleValueIsConfirmed(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("mocana", "60", ""))
	f.accept("b", usd("duarte", "57", "59"))
	f.advance(5 * time.Hour)
	f.refuse(Jump, "a", usd("mocana", "56", ""))
	f.refuse(Jump, "a", usd("mocana", "56", "")) // the same time does not confirm it
	f.advance(5 * time.Hour)
	f.refuse(Jump, "a", usd("mocana", "56.9", "")) // another value does not confirm it
	f.advance(5 * time.Hour)
	f.accept("a", usd("mocana", "56.8", ""))
	if got := f.rate("mocana").Buy.String(); got != "56.8" {
		t.Errorf("buy is %s", got)
	}
	unconfirmed := newFixture(t)
	unconfirmed.accept("a", usd("mocana", "60", ""))
	unconfirmed.accept("b", usd("mocana", "60", ""))
	for range 3 {
		unconfirmed.advance(5 * time.Hour)
		unconfirmed.refuse(Jump, "a", usd("mocana", "56", "")) // no other institution confirms it
		unconfirmed.refuse(Jump, "b", usd("mocana", "56", ""))
	}
}

// An aggregator with exchanged columns repeats the same wrong values of all institutions.
func TestX5_OneSourceIsOneWitness(t *testing.T) {
	f := newFixture(t)
	f.accept("list", usd("mocana", "60", ""), usd("duarte", "60.1", ""))
	for range 3 {
		f.advance(5 * time.Hour)
		f.refuse(Jump, "list", usd("mocana", "67", ""), usd("duarte", "67.1", ""))
	}
	f.accept("duarte-site", Observation{InstitutionID: "duarte", Currency: "USD", Channel: Branch, Buy: "67.2"})
	f.advance(5 * time.Hour)
	f.accept("list", usd("mocana", "67", ""))
}

func TestX5_ADevaluationMovesAll(t *testing.T) {
	f := newFixture(t)
	move := func(buy, sell string) []Observation {
		moved := goodBanks()
		for i := range moved {
			moved[i].Buy, moved[i].Sell = buy+moved[i].Buy[2:], sell+moved[i].Sell[2:]
		}
		return moved
	}
	for _, o := range move("57", "60") {
		f.accept(o.InstitutionID+"-site", o)
	}
	f.advance(4 * time.Hour)
	for _, o := range move("66", "69") {
		f.refuse(Jump, o.InstitutionID+"-site", o)
	}
	f.advance(4 * time.Hour)
	for _, o := range move("66", "69") {
		f.accept(o.InstitutionID+"-site", o)
	}
}

func TestX6_TheMedianCatchesTheFirstValueToo(t *testing.T) {
	f := newFixture(t)
	receipt := f.observe("list", append(goodBanks(), usd("abonap", "47", "48"))...)
	if len(receipt.Refused) != 1 || receipt.Refused[0].Reason != OffMarket || receipt.Refused[0].Index != 6 {
		t.Errorf("a list with one outlier: %+v", receipt)
	}
	reversed := append(goodBanks(), usd("abonap", "47", "48"))
	slices.Reverse(reversed)
	other := newFixture(t)
	if receipt := other.observe("list", reversed...); len(receipt.Refused) != 1 || receipt.Refused[0].Index != 0 {
		t.Errorf("the verdict depends on the order: %+v", receipt)
	}
}

// A source that is wrong about all institutions alike is compared with their own sources, also the first time.
func TestX6_AListIsNotItsOwnMeasure(t *testing.T) {
	f := newFixture(t)
	wrong := []Observation{usd("abonap", "47", "50.5")}
	for i, bank := range goodBanks() {
		f.accept("site-"+string(rune('a'+i)), bank)
		wrong = append(wrong, usd(bank.InstitutionID, "47", "50.5"))
	}
	if receipt := f.observe("list", wrong...); len(receipt.Refused) != len(wrong) || receipt.Refused[0].Reason != OffMarket {
		t.Errorf("a list that is wrong for all: %+v", receipt)
	}
}

func TestI3_ReleaseAndReject(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57", "60"))
	f.advance(time.Hour)
	f.refuse(Jump, "a", usd("bhd", "50", "54"))
	f.refuse(Zero, "a", usd("popular", "0", "0"))
	quarantined := f.state.Snapshot().Quarantine()
	if _, err := f.state.Decide(Release{quarantined[1].ID, "ana"}, f.now); err == nil {
		t.Error("a zero can be released")
	}
	f.apply(Release{quarantined[0].ID, "ana"})
	if got := f.rate("bhd"); got.Buy.String() != "50" {
		t.Errorf("published %s after the release", got.Buy)
	}
	f.apply(Reject{quarantined[1].ID, "ana"})
	if left := f.state.Snapshot().Quarantine(); len(left) != 0 {
		t.Errorf("quarantine still holds %+v", left)
	}
	for _, command := range []Command{Release{quarantined[0].ID, ""}, Reject{99, ""}, Withdraw{QuoteKey{"bhd", Cash, Commercial}, "a", ""}} {
		if _, err := f.state.Decide(command, f.now); err == nil {
			t.Errorf("%+v found something", command)
		}
	}
}

func TestI4_AFailedSourceChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57", "60"))
	before := *f.rate("bhd")
	f.advance(20 * time.Hour)
	f.apply(Observe{[]Refresh{{SourceID: "a", ObservedAt: f.now, Complete: true}}}) // an empty answer
	f.refuse(NoSide, "a", usd("bhd", "", ""))
	if got := *f.rate("bhd"); got != before {
		t.Errorf("the rate is %+v, was %+v", got, before)
	}
	f.now = before.ExpiresAt
	if !f.rate("bhd").Stale {
		t.Error("it never expires")
	}
}

func TestX10_QuarantineKeepsTheSameOnce(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		f.observe("a", usd("bhd", "0", "60"))
	}
	if quarantined := f.state.Snapshot().Quarantine(); len(quarantined) != 1 {
		t.Errorf("%d entries, want 1", len(quarantined))
	}
	for i := range quarantineMax + 10 {
		f.observe("a", usd("bhd", "0", fmt.Sprint(60+i)))
	}
	if quarantined := f.state.Snapshot().Quarantine(); len(quarantined) != quarantineMax || quarantined[quarantineMax-1].ID != quarantineMax+10 {
		t.Errorf("%d entries, the last is %d", len(quarantined), quarantined[len(quarantined)-1].ID)
	}
}

func TestX10_OtherDatesAreOtherObservations(t *testing.T) {
	f := newFixture(t)
	dated := usd("bhd", "0", "60")
	dated.EffectiveDate = DateOf(noon)
	published := usd("bhd", "0", "60")
	published.PublishedAt = noon
	for _, observation := range []Observation{usd("bhd", "0", "60"), dated, published} {
		f.observe("a", observation)
	}
	if quarantined := f.state.Snapshot().Quarantine(); len(quarantined) != 3 {
		t.Errorf("%d entries, want 3", len(quarantined))
	}
}

func TestX13_APriceDoesNotBeginWithAZero(t *testing.T) {
	f := newFixture(t)
	f.refuse(Unparsable, "a", usd("bhd", "057.5", "60"))
	f.refuse(Unparsable, "a", usd("bhd", "57.5", "00"))
	if d, err := parseSide("0.5582"); err != nil || d.String() != "0.5582" {
		t.Errorf("0.5582 reads as %s, %v", d, err)
	}
}

func TestX11_TheFutureIsRefused(t *testing.T) {
	f := newFixture(t)
	ahead := func(d time.Duration) Receipt {
		return f.apply(Observe{[]Refresh{{SourceID: "a", ObservedAt: f.now.Add(d), Observations: []Observation{usd("bhd", "57", "60")}}}})
	}
	if receipt := ahead(6 * time.Minute); len(receipt.Refused) != 1 || receipt.Refused[0].Reason != FutureDate {
		t.Errorf("six minutes ahead: %+v", receipt)
	}
	if receipt := ahead(4 * time.Minute); receipt.Accepted != 1 {
		t.Errorf("four minutes ahead: %+v", receipt)
	}
}

func TestSplitByCurrency(t *testing.T) {
	good := usd("bhd", "57", "60")
	euro := Observation{InstitutionID: "bhd", Currency: "EUR", Buy: "66", Sell: "70"}
	noBank, noCurrency, noChannel, noKind := good, good, good, good
	noBank.InstitutionID, noCurrency.Currency, noChannel.Channel, noKind.Kind = "no-such-bank", "XXX", "atm", "retail"
	refreshes := []Refresh{
		{SourceID: "a", ObservedAt: noon, Observations: []Observation{euro, noBank, good, noCurrency, noChannel, noKind}},
		{SourceID: "", ObservedAt: noon, Observations: []Observation{good}},
		{SourceID: "a", Observations: []Observation{good}},
		{SourceID: "a", ObservedAt: noon, Observations: []Observation{good, good}, Complete: true, Slot: noon},
	}
	parts, refused := SplitByCurrency(DefaultCatalogue(), refreshes)
	var got []string
	for _, r := range refused {
		got = append(got, fmt.Sprintf("%d.%d %s", r.Refresh, r.Index, r.Reason))
	}
	want := []string{"0.1 unknown_institution", "0.3 unknown_currency", "0.4 bad_field", "0.5 bad_field", "1.0 bad_field", "2.0 bad_field"}
	if !slices.Equal(got, want) {
		t.Errorf("refused %v, want %v", got, want)
	}
	dollars := parts["USD"]
	if len(parts) != 2 || len(dollars) != 2 || !slices.Equal(dollars[0].ObservationIndex, []int{2}) || dollars[1].RefreshIndex != 3 ||
		!slices.Equal(dollars[1].ObservationIndex, []int{0, 1}) || !dollars[1].Refresh.Complete || !dollars[1].Refresh.Slot.Equal(noon) ||
		dollars[0].Refresh.currencies != 2 || dollars[1].Refresh.currencies != 1 || parts["EUR"][0].Refresh.currencies != 2 {
		t.Errorf("parts are %+v", parts)
	}
}

// realCounts counts what became of real observations. The errors are the known ones; the days are those of an
// institution that had good observations, lost are those of them without an accepted one.
type realCounts struct {
	total, errors, caught, good, goodRefused, days, lost int
	reasons                                              map[Reason]int
}

// ingestReal ingests real observations, errors included. Nothing wrong may be served at any time.
func ingestReal(t *testing.T, refreshes []Refresh, rules Rules) realCounts {
	t.Helper()
	c := realCounts{reasons: map[Reason]int{}}
	state := NewCurrencyState("USD", testCatalogue(), rules)
	accepted, low, high := map[string]bool{}, decimalFrom("46"), decimalFrom("70") // by institution and day
	for _, refresh := range refreshes {
		decision, err := state.Decide(Observe{[]Refresh{refresh}}, refresh.ObservedAt)
		must(t, err)
		left := map[string]int{}
		name := func(o Observation) string { return fmt.Sprint(o.Key(), DateOf(refresh.ObservedAt)) }
		for _, o := range refresh.Observations {
			_, institution := DefaultCatalogue().Institution(o.InstitutionID)
			if _, currency := DefaultCatalogue().Currency(o.Currency); !institution || !currency {
				t.Fatalf("unknown institution or currency: %+v", o)
			}
			if c.total++; good(o) {
				c.good++
				left[name(o)]++
			} else {
				c.errors++
			}
		}
		for _, refusal := range decision.Receipt.Refused {
			if c.reasons[refusal.Reason]++; good(refusal.Observation) {
				c.goodRefused++
				left[name(refusal.Observation)]--
			} else {
				c.caught++
			}
		}
		for day, count := range left {
			accepted[day] = accepted[day] || count > 0
		}
		replay(state, decision.Events)
		for _, rate := range state.Snapshot().view(refresh.ObservedAt).rates {
			for _, side := range []Decimal{rate.Buy, rate.Sell} {
				if !side.IsNull() && (side.Compare(low) < 0 || side.Compare(high) > 0 || len(side.String()) > 11) {
					t.Fatalf("at %s %s is served with %s", refresh.ObservedAt, rate.ID, side)
				}
			}
		}
	}
	for _, one := range accepted {
		if c.days++; !one {
			c.lost++
		}
	}
	return c
}

// Of four years of real observations all known errors are caught, and at most one good value in a thousand is refused.
func TestI3_RealObservations(t *testing.T) {
	c := ingestReal(t, realRefreshes(t), DefaultRules())
	t.Logf("%+v", c)
	if c.total != 20575 || c.caught != c.errors || c.goodRefused*1000 > c.total {
		t.Errorf("want 20575 observations, all errors caught, and at most 0.1 %% of the good ones refused: %+v", c)
	}
	if c.reasons[Zero] == 0 || c.reasons[NoSide] == 0 || c.reasons[OutOfBand] == 0 {
		t.Errorf("no observation was refused for one of the reasons that the data have: %v", c.reasons)
	}
}

// good is false for the known errors in the data: zeros, empty rows, the lost decimal of 6.09 and the Canadian dollar
// read as American, 39.6971.
func good(o Observation) bool {
	return !(o.Buy == "" && o.Sell == "") && !zeroText(o.Buy) && !zeroText(o.Sell) && o.Buy != "6.09" && o.Buy != "39.6971"
}

func zeroText(text string) bool {
	d, err := ReadDecimal(text)
	return err == nil && d.IsZero()
}

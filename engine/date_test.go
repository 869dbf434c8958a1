package engine

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestT10_Dates(t *testing.T) {
	tables := map[bool][]string{
		true: {"0001-01-01", "9999-12-31", "2024-02-29", "2000-02-29", "0004-02-29", "2025-02-28", "1999-12-31", "2026-06-17"},
		false: {"", "2025-02-29", "1900-02-29", "2100-02-29", "0000-01-01", "0000-12-31", "2025-00-01", "2025-13-01", "2025-01-00",
			"2025-01-32", "2025-04-31", "2025-1-01", "2025-01-1", "25-01-01", "10000-01-01", "+2025-01-01", "-001-01-01",
			"2025-01-01 ", " 2025-01-01", "2025/01/01", "20250101", "2025-01-01T00:00:00Z", "2025-01-0１", "2025-+1-01", "2025-01- 1"},
	}
	for accepted, texts := range tables {
		for _, text := range texts {
			if date, err := ParseDate(text); (err == nil) != accepted {
				t.Errorf("ParseDate(%q) = %v, %v", text, date, err)
			}
			if fault := dateFault(text); fault != "" {
				t.Error(fault)
			}
		}
	}
}

var dateGrammar = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// dateFault compares ParseDate with package time; "" when they agree.
func dateFault(text string) string {
	date, err := ParseDate(text)
	utc, calendar := time.Parse(time.DateOnly, text)
	if !dateGrammar.MatchString(text) || calendar != nil || utc.Year() < 1 {
		if !errors.Is(err, ErrDate) || !date.IsZero() {
			return fmt.Sprintf("ParseDate(%q) = %v, %v; want ErrDate", text, date, err)
		}
		return ""
	}
	if err != nil || date.IsZero() || date.String() != text || string(date.Append([]byte("on "))) != "on "+text || !date.utc().Equal(utc) {
		return fmt.Sprintf("ParseDate(%q) = %v, %v", text, date, err)
	}
	return ""
}

// daysOf is a calendar without package time.
func daysOf(year, month int) int {
	switch {
	case month == 2 && (year%4 == 0 && year%100 != 0 || year%400 == 0):
		return 29
	case month == 2:
		return 28
	case month == 4 || month == 6 || month == 9 || month == 11:
		return 30
	}
	return 31
}

func TestT10_EveryDayOfTheCalendar(t *testing.T) {
	step := sweep(31, 1)
	date := Date(1)
	for year := 1; year <= 9999; year++ {
		for month := 1; month <= 12; month++ {
			for dayOfMonth := 1; dayOfMonth <= daysOf(year, month); dayOfMonth++ {
				if int(date)%step == 0 || date == 1 || date == dateMax {
					text := fmt.Sprintf("%04d-%02d-%02d", year, month, dayOfMonth)
					if got, err := ParseDate(text); err != nil || got != date || date.String() != text {
						t.Fatalf("day %d is %s: ParseDate %d, %v; String %s", date, text, got, err, date)
					}
				}
				date++
			}
			if _, err := ParseDate(fmt.Sprintf("%04d-%02d-%02d", year, month, daysOf(year, month)+1)); err == nil {
				t.Fatalf("%d-%d has a day too many", year, month)
			}
		}
	}
	if date-1 != dateMax {
		t.Errorf("the calendar ends with day %d, dateMax is %d", date-1, dateMax)
	}
}

func TestDate_NoDate(t *testing.T) {
	var none Date
	if !none.IsZero() || none.String() != "" || len(none.Append(nil)) != 0 || none.AddDays(5) != 0 {
		t.Error("the zero Date is a date")
	}
	for _, outside := range []time.Time{{}, at("0001-01-01T00:00:00Z"), time.Unix(math.MinInt32*86400, 0),
		time.Date(10_000, 1, 1, 4, 0, 0, 0, time.UTC), time.Unix(1<<50, 0)} {
		if date := DateOf(outside); date != 0 {
			t.Errorf("%v has the date %d", outside, date)
		}
	}
	if got := DateOf(time.Date(10_000, 1, 1, 3, 59, 59, 0, time.UTC)).String(); got != "9999-12-31" {
		t.Errorf("the last second of the year 9999 is on %s", got)
	}
	first := dayOf("0001-01-01").Start()
	if got := DateOf(first).String(); got != "0001-01-01" {
		t.Errorf("the first day begins on %s", got)
	}
	if got := DateOf(first.Add(-time.Second)); got != 0 {
		t.Errorf("the second before the first day has the date %d", got)
	}
	if got := string(none.Append([]byte("day "))); got != "day " {
		t.Errorf("no date appended to %q makes %q", "day ", got)
	}
}

func TestDate_AddDays(t *testing.T) {
	for _, c := range []struct {
		from string
		days int
		want string
	}{
		{"2024-02-28", 1, "2024-02-29"}, {"2024-02-28", 2, "2024-03-01"}, {"2025-02-28", 1, "2025-03-01"},
		{"2026-01-01", -1, "2025-12-31"}, {"2026-06-17", 0, "2026-06-17"}, {"2025-03-01", 365, "2026-03-01"},
		{"0001-01-03", -6, "0001-01-01"}, {"9999-12-30", 6, "9999-12-31"},
		{"2026-06-17", math.MinInt, "0001-01-01"}, {"2026-06-17", math.MaxInt, "9999-12-31"},
	} {
		if got := dayOf(c.from).AddDays(c.days).String(); got != c.want {
			t.Errorf("%s%+d days = %s, want %s", c.from, c.days, got, c.want)
		}
	}
}

func TestT2_StartsAndRefreshesAroundTheChangesOf2000(t *testing.T) {
	for date, want := range map[string][2]string{ // start, first refresh of the day
		"2000-10-28": {"2000-10-28T04:00:00Z", "2000-10-28T12:00:00Z"},
		"2000-10-29": {"2000-10-29T04:00:00Z", "2000-10-29T13:00:00Z"}, // a day of 25 hours
		"2000-10-30": {"2000-10-30T05:00:00Z", "2000-10-30T13:00:00Z"},
		"2000-12-03": {"2000-12-03T05:00:00Z", "2000-12-03T12:00:00Z"}, // a day of 23 hours
		"2000-12-04": {"2000-12-04T04:00:00Z", "2000-12-04T12:00:00Z"},
		"1966-10-30": {"1966-10-30T05:00:00Z", "1966-10-30T12:00:00Z"}, // no midnight: 24:00 was 1:00
	} {
		start := dayOf(date).Start()
		if got := [2]string{start.Format(time.RFC3339), NextRefresh(start).Format(time.RFC3339)}; got != want {
			t.Errorf("%s: starts and refreshes at %v, want %v", date, got, want)
		}
	}
}

// startFault finds a day that does not begin where start says; "" when there is none.
func startFault(start func(Date) time.Time, from, to Date, step int) string {
	for date := from; date <= to; date += Date(step) {
		begin := start(date)
		before := DateOf(begin.Add(-1))
		if DateOf(begin) != date || before != date-1 || begin.Location() != time.UTC {
			return fmt.Sprintf("%s begins at %v, which is on %s, and the instant before on %s", date, begin, DateOf(begin), before)
		}
	}
	return ""
}

func TestT2_EveryDayBeginsWithItsStart(t *testing.T) {
	step := sweep(97, 1)
	if fault := startFault(Date.Start, 1, dateMax, step); fault != "" {
		t.Error(fault)
	}
	if fault := startFault(Date.Start, dayOf("1890-01-01"), dayOf("2030-12-31"), 1); fault != "" {
		t.Error(fault)
	}
}

func TestT2_Control(t *testing.T) {
	from, to := dayOf("1966-01-01"), dayOf("2000-12-31")
	for name, planted := range map[string]func(Date) time.Time{
		"midnight by the clock": func(d Date) time.Time { return d.atHour(0).UTC() },
		"always four hours":     func(d Date) time.Time { return d.utc().Add(4 * time.Hour) },
		"UTC":                   Date.utc,
	} {
		if startFault(planted, from, to, 1) == "" {
			t.Errorf("starts by %q pass", name)
		}
	}
}

// anyInstant is in the years 1 to 9999, every second one between 1960 and 2030.
func anyInstant(dice *rand.Rand) time.Time {
	from, span := int64(-secondsBeforeUnix+secondsOfDay), int64(dateMax-4)*secondsOfDay
	if dice.IntN(2) == 0 {
		from, span = -315_619_200, 70*365*secondsOfDay
	}
	return time.Unix(from+dice.Int64N(span), dice.Int64N(1_000_000_000)).UTC()
}

// nextFault compares NextRefresh and NextMidnight with the clock of Santo Domingo; "" when they agree.
func nextFault(after time.Time, nextRefresh func(time.Time) time.Time) string {
	var slots []time.Time
	for offset := -1; offset <= 2; offset++ {
		for _, hour := range []int{8, 12, 17} {
			local := after.In(Location())
			slots = append(slots, time.Date(local.Year(), local.Month(), local.Day()+offset, hour, 0, 0, 0, Location()))
		}
	}
	want := slots[slices.IndexFunc(slots, func(slot time.Time) bool { return slot.After(after) })]
	if got := nextRefresh(after); !got.Equal(want) || got.Location() != time.UTC {
		return fmt.Sprintf("after %v the next refresh is %v, want %v", after, got, want)
	}
	midnight := NextMidnight(after)
	if !midnight.After(after) || DateOf(midnight) != DateOf(after)+1 || DateOf(midnight.Add(-1)) != DateOf(after) {
		return fmt.Sprintf("after %v the next midnight is %v", after, midnight)
	}
	return ""
}

func TestT2_NextRefreshAndNextMidnight(t *testing.T) {
	dice, count := rand.New(rand.NewPCG(2, 2000)), sweep(2_000, 20_000)
	for range count {
		after := anyInstant(dice)
		for _, at := range []time.Time{after, NextRefresh(after), NextRefresh(after).Add(-1), NextMidnight(after), NextMidnight(after).Add(-1)} {
			if fault := nextFault(at, NextRefresh); fault != "" {
				t.Fatal(fault)
			}
		}
	}
	sinceStart := func(after time.Time) time.Time { // the control: hours counted from the start of the day
		for _, date := range []Date{DateOf(after), DateOf(after) + 1} {
			for _, hour := range refreshHours() {
				if slot := date.Start().Add(time.Duration(hour) * time.Hour); slot.After(after) {
					return slot
				}
			}
		}
		return time.Time{}
	}
	if nextFault(at("2000-10-29T06:00:00Z"), sinceStart) == "" {
		t.Error("hours counted from the start of the day pass")
	}
}

func TestT2_DateOfIsTheLocalDate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(-secondsBeforeUnix+secondsOfDay, 253_402_300_799).Draw(t, "seconds")
		at := time.Unix(seconds, rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
		if got, want := DateOf(at).String(), at.In(Location()).Format(time.DateOnly); got != want {
			t.Fatalf("%v is on %s, want %s", at, got, want)
		}
		if DateOf(at) != DateOf(at.UTC()) || DateOf(at) != DateOf(at.In(time.FixedZone("far", 14*3600))) {
			t.Fatalf("the date of %v depends on its location", at)
		}
	})
}

func FuzzParseDate(f *testing.F) {
	fuzzTexts(f, dateFault, "", "2025-02-29", "2024-02-29", "0000-01-01", "0001-01-01", "9999-12-31", "2025-1-1", "2025-01-01T00:00:00Z")
}

func TestT1_StaleFromTheInstantOfExpiry(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57", "60"))
	expires, before := f.rate("bhd").ExpiresAt, f.marketView()
	for _, c := range []struct {
		now   time.Time
		stale bool
	}{{expires.Add(-time.Nanosecond), false}, {expires, true}, {expires.Add(time.Hour), true}} {
		f.now = c.now
		market := NewMarketView(DefaultCatalogue(), []*CurrencySnapshot{f.state.Snapshot()}, c.now)
		detail, err := market.Institution("bhd")
		must(t, err)
		ranked := len(f.ranking(Buy)) == 1
		listed := market.Institutions(InstitutionsQuery{"USD", PageRequest{1, 0}}).Items[0].CurrentQuoteCount == 1
		counted := slices.ContainsFunc(market.Currencies().Items, func(c CurrencyItem) bool { return c.Code == "USD" && c.CurrentQuoteCount == 1 })
		if f.rate("bhd").Stale != c.stale || detail.Items[0].Stale != c.stale || ranked == c.stale || listed == c.stale || counted == c.stale {
			t.Errorf("at %s: rate stale %v, detail %v, ranked %v, counted %v, %v; want stale %v everywhere",
				c.now, f.rate("bhd").Stale, detail.Items[0].Stale, ranked, listed, counted, c.stale)
		}
		if c.stale != !before.ValidAt(c.now) { // the view of the market holds until the instant before an expiry
			t.Errorf("at %s the view of before holds: %t", c.now, c.stale)
		}
	}
}

func TestT1_AViewIsRightUntilItChanges(t *testing.T) {
	f := newFixture(t)
	for i, institution := range []string{"bhd", "popular", "caribe"} {
		f.accept("s-"+institution, usd(institution, "57", "60"))
		f.advance(time.Duration(i+1) * time.Hour)
	}
	for range 3 {
		view := f.view()
		before := f.state.Snapshot().view(view.changesAt.Add(-1))
		if !slices.EqualFunc(before.rates, view.rates, func(a, b *Rate) bool { return *a == *b }) {
			t.Fatalf("the view changed before %s", view.changesAt)
		}
		f.now = view.changesAt
		if len(f.view().toBuy) != len(view.toBuy)-1 {
			t.Fatalf("nothing expired at %s", view.changesAt)
		}
	}
	if !f.view().changesAt.IsZero() {
		t.Error("a view without current rates changes by itself")
	}
}

func TestT3_Expiry(t *testing.T) {
	f := newFixture(t)
	stated := usd("popular", "57", "60")
	stated.ExpiresAt = f.now.Add(3 * time.Hour)
	f.accept("a", usd("bhd", "57", "60"), stated)
	if got := f.rate("bhd"); !got.ExpiresAt.Equal(got.LastCheckedAt.Add(26 * time.Hour)) {
		t.Errorf("expires at %s, want 26 h after %s", got.ExpiresAt, got.LastCheckedAt)
	}
	if got := f.rate("popular"); !got.ExpiresAt.Equal(stated.ExpiresAt) {
		t.Errorf("expires at %s, want what the source states", got.ExpiresAt)
	}
	f.advance(time.Hour)
	f.accept("a", usd("bhd", "57", "60"))
	if got := f.rate("bhd"); !got.ExpiresAt.Equal(f.now.Add(26 * time.Hour)) {
		t.Errorf("a new check does not move the expiry: %s", got.ExpiresAt)
	}
	f.accept("bcrd-reference", reference("58.9", "59.3"))
	if got := f.rate("bcrd"); got.ExpiresAt.Equal(f.now.Add(26 * time.Hour)) {
		t.Error("a source's own lifetime is ignored")
	}
}

func TestT4_CollectedAndChecked(t *testing.T) {
	f := newFixture(t)
	start := f.now
	f.accept("a", usd("bhd", "57.30", "60"))
	steps := []struct {
		observation Observation
		moved       bool
	}{
		{usd("bhd", "57.30", "60"), false},
		{usd("bhd", "57.3", "60.00"), false}, // the same number
		{usd("bhd", "57.4", "60.00"), true},
		{Observation{InstitutionID: "bhd", Currency: "USD", Buy: "57.4", Sell: "60", EffectiveDate: DateOf(noon)}, true},
		{Observation{InstitutionID: "bhd", Currency: "USD", Buy: "57.4", Sell: "60", EffectiveDate: DateOf(noon)}, false},
	}
	collected := start
	for i, step := range steps {
		f.advance(time.Hour)
		if step.moved {
			collected = f.now
		}
		f.accept("a", step.observation)
		got := f.rate("bhd")
		if !got.CollectedAt.Equal(collected) || !got.LastCheckedAt.Equal(f.now) || got.Buy.String() != step.observation.Buy {
			t.Errorf("step %d: collected %s, checked %s, buy %s; want %s, %s, %s", i,
				got.CollectedAt, got.LastCheckedAt, got.Buy, collected, f.now, step.observation.Buy)
		}
	}
}

func (f *fixture) history(institution string) []string {
	today := DateOf(f.now)
	q := HistoryQuery{Filter: Filter{Institution: institution}, PageRequest: PageRequest{LimitMax, 0}, From: today - 30, To: today + 30}
	var rows []string
	for _, row := range f.state.Snapshot().History(q).Items {
		rows = append(rows, row.Date.String()+" "+row.Buy.String()+" "+row.SourceID)
	}
	return rows
}

func (f *fixture) wantHistory(want ...string) {
	f.t.Helper()
	if got := f.history("bhd"); !slices.Equal(got, want) {
		f.t.Fatalf("history is %v, want %v", got, want)
	}
}

func TestT5_OneRowADay(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57.1", "60"))
	f.advance(time.Hour)
	f.accept("a", usd("bhd", "57.2", "60"))
	f.wantHistory("2026-06-17 57.2 a")
	f.advance(24 * time.Hour)
	f.accept("a", usd("bhd", "57.2", "60")) // unchanged on the next day
	f.wantHistory("2026-06-17 57.2 a", "2026-06-18 57.2 a")
	f.advance(48 * time.Hour) // a day without an observation has no row
	f.accept("a", usd("bhd", "57.3", "60"))
	f.wantHistory("2026-06-17 57.2 a", "2026-06-18 57.2 a", "2026-06-20 57.3 a")
	f.now = at("2026-06-21T03:59:59Z") // still the 20th in Santo Domingo
	f.accept("a", usd("bhd", "57.4", "60"))
	f.wantHistory("2026-06-17 57.2 a", "2026-06-18 57.2 a", "2026-06-20 57.4 a")
	dated := usd("bhd", "57.5", "60")
	dated.EffectiveDate = DateOf(noon) + 2
	f.accept("a", dated)
	f.wantHistory("2026-06-17 57.2 a", "2026-06-18 57.2 a", "2026-06-19 57.5 a", "2026-06-20 57.4 a")
}

func TestX3_TheBestSourceOfTheDayHasTheRow(t *testing.T) {
	f := newFixture(t)
	f.accept("infodolar", usd("bhd", "57.0", "60"))
	f.wantHistory("2026-06-17 57.0 infodolar")
	f.accept("bhd-site", usd("bhd", "57.1", "60"))
	f.advance(time.Hour)
	f.accept("infodolar", usd("bhd", "57.2", "60"))
	f.wantHistory("2026-06-17 57.1 bhd-site")
	f.accept("manual", usd("bhd", "57.3", "60"))
	f.accept("bhd-site", usd("bhd", "57.4", "60"))
	f.wantHistory("2026-06-17 57.3 manual")
	f.apply(Withdraw{QuoteKey{"bhd", Unspecified, Commercial}, "manual", "ana"})
	f.advance(time.Hour)
	f.accept("bhd-site", usd("bhd", "57.4", "60"))
	f.wantHistory("2026-06-17 57.4 bhd-site")
}

// TestX4_OperatorWithAClockBehind: a rate that an operator sets counts, also at a node whose clock is behind.
func TestX4_OperatorWithAClockBehind(t *testing.T) {
	f := newFixture(t)
	for i, buy := range []string{"57.3", "57.4"} {
		f.apply(Observe{[]Refresh{{SourceID: "manual", ObservedAt: f.now.Add(-time.Duration(i) * time.Second), By: "ana",
			Observations: []Observation{usd("bhd", buy, "60")}}}})
	}
	if got := f.rate("bhd"); got.Buy.String() != "57.4" || !got.LastCheckedAt.Equal(f.now) {
		t.Errorf("the second value does not count: %+v", got)
	}
}

func TestX4_ABackfillOnlyFillsHistory(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57.1", "60"))
	late := func(hours int, buy string) Receipt {
		return f.apply(Observe{[]Refresh{{SourceID: "a", ObservedAt: f.now.Add(-time.Duration(hours) * time.Hour),
			Observations: []Observation{usd("bhd", buy, "60")}}}})
	}
	if receipt := late(24, "57.0"); receipt.Accepted != 1 || receipt.Changed != 1 {
		t.Fatalf("receipt %+v", receipt)
	}
	late(1, "57.05") // the same day, but earlier than what is known of it
	f.wantHistory("2026-06-16 57.0 a", "2026-06-17 57.1 a")
	if got := f.rate("bhd"); got.Buy.String() != "57.1" || !got.LastCheckedAt.Equal(f.now) {
		t.Errorf("a backfill moved the offer: %+v", got)
	}
	if receipt := late(48, "47"); len(receipt.Refused) != 0 {
		t.Errorf("without an earlier day there is nothing to measure against: %+v", receipt.Refused)
	}
	if receipt := late(20, "50"); len(receipt.Refused) != 1 || receipt.Refused[0].Reason != Jump {
		t.Errorf("a backfill that jumps: %+v, want %s", receipt, Jump)
	}
}

func TestT6_DefaultRange(t *testing.T) {
	day := func(text string) Date { d, _ := ParseDate(text); return d }
	today := day("2026-06-17")
	for _, c := range []struct{ from, to, wantFrom, wantTo string }{
		{"", "", "2026-06-11", "2026-06-17"}, {"2026-06-01", "", "2026-06-01", "2026-06-17"},
		{"", "2026-03-03", "2026-02-25", "2026-03-03"}, {"2026-01-01", "2026-01-02", "2026-01-01", "2026-01-02"},
	} {
		from, to := ResolveHistoryRange(day(c.from), day(c.to), today)
		if from.String() != c.wantFrom || to.String() != c.wantTo {
			t.Errorf("%q to %q is %s to %s", c.from, c.to, from, to)
		}
	}
}

func TestT9_Depth(t *testing.T) {
	rules := DefaultRules()
	rules.HistoryDays = 1 // less than what is promised
	f := newFixture(t)
	f.state = NewCurrencyState("USD", testCatalogue(), rules)
	for range 800 {
		f.now = f.now.Add(24 * time.Hour)
		f.accept("a", usd("bhd", "57", "60"))
		f.state.Snapshot()
	}
	today := DateOf(f.now)
	page := f.state.Snapshot().History(HistoryQuery{PageRequest: PageRequest{LimitMax, 0}, From: today - 365, To: today})
	if page.Total != 366 {
		t.Errorf("a year back there are %d days, want 366", page.Total)
	}
	if page := f.state.Snapshot().History(HistoryQuery{PageRequest: PageRequest{LimitMax, 0}, From: 1, To: today + 999}); page.Total > 366+8 {
		t.Errorf("%d days are kept, want the depth and no more", page.Total)
	}
	if page := f.state.Snapshot().History(HistoryQuery{PageRequest: PageRequest{LimitMax, 0}, From: today + 1, To: today + 300}); page.Total != 0 {
		t.Error("the future has rows")
	}
}

func TestInstantsLoseTheirZone(t *testing.T) {
	f := newFixture(t)
	f.now = noon.In(Location())
	observation := usd("bhd", "57", "60")
	observation.PublishedAt = f.now
	f.accept("a", observation)
	got := f.rate("bhd")
	if got.CollectedAt != noon || got.PublishedAt != noon || f.state.Snapshot().Saved().History[0].ObservedAt != noon {
		t.Errorf("collected %v, published %v", got.CollectedAt, got.PublishedAt)
	}
}

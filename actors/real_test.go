package actors

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/wal"
)

const realObservations = "../../shared/data/observations.csv"

// realRefreshes are the real observations, grouped as they were read: one source at one moment.
func realRefreshes(t testing.TB) []engine.Refresh {
	t.Helper()
	file, err := os.Open(realObservations)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the real observations are not here: " + realObservations)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var refreshes []engine.Refresh
	for _, line := range lines[1:] {
		at, err := time.Parse(time.RFC3339, line[0])
		if err != nil {
			t.Fatal(err)
		}
		if n := len(refreshes); n == 0 || refreshes[n-1].SourceID != line[7] || !refreshes[n-1].ObservedAt.Equal(at) {
			refreshes = append(refreshes, engine.Refresh{SourceID: line[7], ObservedAt: at})
		}
		effective, _ := engine.ParseDate(line[8])
		last := &refreshes[len(refreshes)-1]
		last.Observations = append(last.Observations, engine.Observation{
			InstitutionID: line[1], Currency: line[2], Channel: engine.Channel(line[3]), Kind: engine.Kind(line[4]),
			Buy: line[5], Sell: line[6], EffectiveDate: effective,
		})
	}
	return refreshes
}

// answers are all that the service says, page by page, as text.
func answers(t *testing.T, s *System) map[string]string {
	t.Helper()
	out := map[string]string{}
	keep := func(name string, page any, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := json.Marshal(page)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(text)
	}
	everything := engine.Cut{Limit: 1 << 30}
	currencies, err := s.Currencies()
	keep("currencies", currencies.Items, err)
	institutions, err := s.Institutions(engine.InstitutionsQuery{Cut: everything})
	keep("institutions", institutions.Items, err)
	for _, one := range institutions.Items {
		detail, err := s.Institution(one.ID)
		keep("institution "+one.ID, detail.Rates, err)
	}
	rates, err := s.Rates(engine.RatesQuery{Cut: everything})
	keep("rates", texts(rates.Items), err)
	for _, operation := range engine.Operations() {
		ranking, err := s.Ranking(engine.RankingQuery{Filter: engine.Filter{Currency: "USD"}, Cut: everything, Operation: operation})
		keep("ranking "+string(operation), texts(ranking.Items), err)
	}
	for _, currency := range []string{"", "USD", "EUR"} {
		history, err := s.History(engine.HistoryQuery{Filter: engine.Filter{Currency: currency}, Cut: everything, From: 1, To: 1 << 20})
		var rows []string
		for _, row := range history.Items {
			rows = append(rows, row.Date.String(), row.InstitutionID, row.Currency, row.Buy.String(), row.Sell.String(), row.SourceID)
		}
		keep("history "+currency, rows, err)
	}
	return out
}

func texts(rates []*engine.Rate) []string {
	var out []string
	for _, rate := range rates {
		out = append(out, rate.ID, rate.Buy.String(), rate.Sell.String(), rate.CollectedAt.String(), rate.ExpiresAt.String())
	}
	return out
}

// All real observations are taken in, in calls of some size; after a restart, from snapshot and from the
// log alone, every answer is the same; taking them in again changes nothing.
func TestRealObservations(t *testing.T) {
	refreshes := realRefreshes(t)
	c := Config{Dir: t.TempDir(), Log: LogConfig{SegmentBytes: 64 << 10}, SnapshotRecords: 500, Clock: func() time.Time {
		return time.Date(2026, 9, 18, 16, 0, 0, 0, time.UTC)
	}}
	s := start(t, c)
	total, accepted, refused := 0, 0, 0
	for from := 0; from < len(refreshes); from += 400 {
		part := refreshes[from:min(from+400, len(refreshes))]
		receipt := observe(t, s, part...)
		total, accepted, refused = total+countObservations(part), accepted+receipt.Accepted, refused+len(receipt.Refused)
		for _, refusal := range receipt.Refused {
			if got := part[refusal.Refresh].Observations[refusal.Index]; !reflect.DeepEqual(got, refusal.Observation) {
				t.Fatalf("refusal %+v is of %+v", refusal, got)
			}
		}
	}
	oracle := engine.NewBook("USD", testCatalogue(), engine.DefaultRules())
	verdict, err := oracle.Decide(engine.Observe{Refreshes: refreshes}, c.Clock())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d observations, %d accepted, %d refused, %d records", total, accepted, refused, s.journal.Last())
	if total != 20575 || accepted+refused != total || accepted != verdict.Receipt.Accepted {
		t.Errorf("%d observations, %d accepted, %d refused; want 20575, %d of them accepted as by a book alone",
			total, accepted, refused, verdict.Receipt.Accepted)
	}
	want, wantStates := answers(t, s), states(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := wal.Verify(c.Dir)
	if err != nil || len(report.Snapshots) != 2 || report.First == 1 {
		t.Errorf("%+v, %v; want two snapshots and a log without its beginning", report, err)
	}
	again := start(t, c)
	if got := answers(t, again); !reflect.DeepEqual(got, want) {
		t.Error("the answers after a restart are other ones")
	}
	if !reflect.DeepEqual(normal(states(t, again)), normal(wantStates)) {
		t.Error("the state after a restart is another one")
	}
	last := again.journal.Last()
	for from := 0; from < len(refreshes); from += 5000 {
		observe(t, again, refreshes[from:min(from+5000, len(refreshes))]...)
	}
	if got := answers(t, again); !reflect.DeepEqual(got, want) || again.journal.Last() != last {
		t.Errorf("taken in again: other answers or %d more records", again.journal.Last()-last)
	}
}

//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
)

// growingMarket is a node's state on disk, without HTTP, in which each institution is a source of every currency.
type growingMarket struct {
	*actors.System
	institutions, currencies int
	minutes                  int
}

func newGrowingMarket(b *testing.B, dir string, institutions, currencies int) *growingMarket {
	b.Helper()
	var banks, codes []string
	for i := range institutions {
		banks = append(banks, fmt.Sprintf(`{"id": "bank-%d", "name": "Bank %[1]d", "type": "bank"}`, i))
	}
	for i := range currencies {
		codes = append(codes, fmt.Sprintf(`{"code": %q, "name": "Currency %d"}`, currencyCode(i), i))
	}
	catalogue, err := engine.DefaultCatalogue().Extend(strings.NewReader(
		fmt.Sprintf(`{"institutions": [%s], "currencies": [%s]}`, strings.Join(banks, ","), strings.Join(codes, ","))), "more")
	noError(b, err)
	m := &growingMarket{institutions: institutions, currencies: currencies}
	config := actors.Config{Dir: dir, Clock: time.Now, Catalogue: catalogue}
	config.QuotaPolicy.DefaultQuota = account.Quota{Day: 100_000_000, Minute: 100_000}
	if m.System, err = actors.Open(config); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close() }) // nothing reads it again
	<-m.Ready()
	m.observe(b, 1)
	return m
}

// currencyCode returns a code that no currency has.
func currencyCode(i int) string { return fmt.Sprintf("Q%c%c", 'A'+i/26, 'A'+i%26) }

// observe takes in a new value of every rate, as often as rounds says, in one batch.
func (m *growingMarket) observe(b *testing.B, rounds int) {
	b.Helper()
	var batch []engine.Refresh
	for range rounds {
		m.minutes++
		at := time.Now().Add(time.Duration(m.minutes-100_000) * 100 * time.Millisecond)
		for i := range m.institutions {
			r := engine.Refresh{SourceID: fmt.Sprint("source-", i), ObservedAt: at}
			for c := range m.currencies {
				cents := (i + m.minutes) % 50
				r.Observations = append(r.Observations, engine.Observation{
					InstitutionID: fmt.Sprintf("bank-%d", i), Currency: currencyCode(c), Buy: fmt.Sprintf("57.%02d", cents), Sell: fmt.Sprintf("58.%02d", cents+20),
				})
			}
			batch = append(batch, r)
		}
	}
	if receipt, err := m.Observe(batch); err != nil || receipt.Accepted != rounds*m.institutions*m.currencies {
		b.Fatalf("%d accepted, %v, %+.300v", receipt.Accepted, err, receipt.Refused)
	}
}

// BenchmarkObserve takes observations in, validated and durable: in batches like those of tasard import (goal F10:
// observations/s), and in one refresh of each source, in markets of two sizes (goal F11: CPU time).
func BenchmarkObserve(b *testing.B) {
	for _, c := range []struct {
		name                             string
		institutions, currencies, rounds int
	}{{"import/44x8", 44, 8, 24}, {"refresh/44x8", 44, 8, 1}, {"refresh/200x50", 200, 50, 1}} {
		b.Run(c.name, func(b *testing.B) {
			m, count := newGrowingMarket(b, b.TempDir(), c.institutions, c.currencies), 0
			before := processTime()
			for b.Loop() {
				m.observe(b, c.rounds)
				count += c.rounds * c.institutions * c.currencies
			}
			b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "observations/s")
			b.ReportMetric(float64((processTime()-before).Nanoseconds())/float64(count)/1000, "µs-CPU/observation")
		})
	}
}

// BenchmarkRanking asks for the ten best rates of one currency, in a market and in one with ten times the institutions
// and currencies (goal F11).
func BenchmarkRanking(b *testing.B) {
	for _, size := range [][2]int{{44, 8}, {440, 80}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			m := newGrowingMarket(b, b.TempDir(), size[0], size[1])
			for b.Loop() {
				m.rank(b)
			}
		})
	}
}

func (m *growingMarket) rank(b *testing.B) {
	q := engine.RankingQuery{Filter: engine.Filter{Currency: currencyCode(0)}, PageRequest: engine.PageRequest{Limit: 10}, Operation: engine.Buy}
	if page, err := m.Ranking(q); err != nil || len(page.Items) != 10 {
		b.Fatal(page, err)
	}
}

// BenchmarkAdmitAndRank admits callers with keys of many accounts that all ask for one currency. With -cpu 1,2 it shows
// what all requests write (goal F13).
func BenchmarkAdmitAndRank(b *testing.B) {
	const accounts = 2000 // of one goroutine
	f, err := newFixture(b.TempDir(), accounts*runtime.GOMAXPROCS(0))
	noError(b, err)
	m := newGrowingMarket(b, f.dir, 44, 8)
	var goroutines atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(loop *testing.PB) {
		keys := f.keys[accounts*(goroutines.Add(1)-1):]
		for n := 0; loop.Next(); n++ {
			digest, _ := account.ParseKey([]byte(keys[n%accounts])) // a node has made it
			grant, err := m.Admitter().Admit(account.Caller{Key: digest, HasKey: true, Address: netip.MustParseAddr("127.0.0.1")})
			if err != nil || grant.Account == 0 || !grant.Admitted {
				b.Error(grant, err)
				return
			}
			m.rank(b)
		}
	})
}

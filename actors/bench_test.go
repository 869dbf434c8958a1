package actors

import (
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/accounts"
	"github.com/tasard/tasard/engine/account"
)

// A warm question through the actor of its currency.
func BenchmarkRanking(b *testing.B) {
	s := start(b, Config{Journal: &memoryJournal{}})
	observe(b, s, saying("a", noon, "USD", "57", "60", "popular", "bhd"))
	q := usdRanking()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Ranking(q); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	n, caller := benchNode(b, account.LeaseDefault)
	b.ReportAllocs()
	for b.Loop() {
		ask(b, n, caller)
	}
}

// benchNode is a node with one key that may ask for ever.
func benchNode(b testing.TB, lease int) (*node, account.Caller) {
	start := time.Now() //nolint:forbidigo // what a node costs with the real clock
	n := startNode(b, Config{
		Terms: account.Terms{Allowance: account.Allowance{Day: accounts.AllowanceDayMax, Minute: account.MinuteLimitDefault}, Lease: lease},
		Clock: func() time.Time { return noon.Add(time.Since(start)) }, Steady: paceOf(2 * time.Second), //nolint:forbidigo // the same
	})
	m := n.join(1, 1)
	caller := account.Caller{Key: m.keys[0], HasKey: true, Address: client(1)}
	return n, caller
}

func ask(b testing.TB, n *node, caller account.Caller) {
	if grant, err := n.Admit(caller); err != nil || !grant.Admitted {
		b.Fatal(grant, err)
	}
}

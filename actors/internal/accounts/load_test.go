package accounts

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasard/tasard/actors/internal/keyindex"
	"github.com/tasard/tasard/actors/mailbox"
)

// usedShard is a shard with so many evicted accounts, each with a key that was used today.
func usedShard(b testing.TB, accounts int) *ShardActor {
	b.Helper()
	clock := newMonotonicClock(func() time.Time { return noon }, func() time.Duration { return 0 })
	clock.resume(0, time.Time{})
	system := mailbox.NewSystem(mailbox.Config{Limit: 64, Workers: 1, Fail: func(err error) { b.Error(err) }})
	b.Cleanup(system.Close)
	s := &ShardActor{
		actors: system, kind: &mailbox.Kind{Name: "account", Transient: true}, common: &accountCommon{clock: clock},
		loadedMax: accounts, loadedCount: new(atomic.Int64), evicted: map[uint64]evictedAccount{}, Loaded: map[uint64]*loadedAccount{}, keys: keyindex.New(),
	}
	for id := range uint64(accounts) {
		s.evicted[id] = EncodeEvicted(testAccount(b, id))
		s.keys.Claim(keyOf(id), id)
	}
	return s
}

// BenchmarkLoadAndEvict measures the extra cost of the first request of an idle account, and of its eviction.
func BenchmarkLoadAndEvict(b *testing.B) {
	const accounts, loaded = 100_000, 20_000
	s := usedShard(b, accounts)
	b.ResetTimer()
	b.ReportAllocs()
	for i := range b.N {
		if err := turnOver(s, uint64(i%accounts), loaded); err != nil {
			b.Fatal(err)
		}
	}
}

// turnOver loads an account, and evicts another one when more than so many are loaded.
func turnOver(s *ShardActor, id uint64, loaded int) error {
	one, err := s.load(id)
	if err != nil {
		return err
	}
	s.keys.SetActor(keyOf(id), id, &one.Ref)
	if len(s.order) > loaded {
		s.roomIndex = (s.roomIndex + 1) % len(s.order)
		s.evict(s.order[s.roomIndex], func() bool { return true })
	}
	return nil
}

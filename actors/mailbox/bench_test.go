package mailbox

import (
	"testing"
	"time"
)

func BenchmarkAsk(b *testing.B) {
	s, _ := newTestSystem(b, 4096)
	actor := spawnTestActor(b, s, &testActor{behave: answering})
	var requests RequestPool[int, int]
	b.Run("idle", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = requests.Ask(actor, 4, time.Minute)
		}
	})
	b.Run("contended", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = requests.Ask(actor, 4, time.Minute)
			}
		})
	})
	actor.Stop()
}

package accounts

import (
	"sync"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
)

// idleSweeper regularly sends the message Sweep to every shard, which is an actor that keeps a part of the accounts.
// Sweep makes the shard evict idle accounts: it ends their actors and keeps the accounts encoded. In a cluster it also
// sends CheckReturns, which makes accounts return quota leases (reserved parts of quotas) that they do not need.
type idleSweeper struct {
	stop chan struct{}
	done sync.WaitGroup
}

// sweepInterval is the time between two Sweep messages. An account without requests is evicted by the fourth Sweep
// (SweepsIdle), after about 2 minutes.
const sweepInterval = 30 * time.Second

// checkReturnsInterval is the time between two CheckReturns messages.
const checkReturnsInterval = 5 * time.Second

func startSweeper(cluster bool, shards []*mailbox.Ref) *idleSweeper {
	s := &idleSweeper{stop: make(chan struct{})}
	s.done.Add(1)
	go s.run(sweepInterval, func() mailbox.Message { return &Sweep{} }, shards)
	if cluster {
		s.done.Add(1)
		go s.run(checkReturnsInterval, func() mailbox.Message { return &CheckReturns{} }, shards)
	}
	return s
}

func (s *idleSweeper) run(interval time.Duration, newMessage func() mailbox.Message, shards []*mailbox.Ref) {
	defer s.done.Done()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		for _, shard := range shards {
			shard.Send(newMessage())
		}
	}
}

func (s *idleSweeper) end() {
	close(s.stop)
	s.done.Wait()
}

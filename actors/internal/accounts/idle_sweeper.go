package accounts

import (
	"sync"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
)

// idleSweeper has the goroutines that send Sweep and, in a cluster, CheckReturns to the shards.
type idleSweeper struct {
	stop chan struct{}
	done sync.WaitGroup
}

// sweepInterval is the time between sweeps. An account is evicted after SweepsIdle sweeps (2 min) without a request.
const sweepInterval = 30 * time.Second

// checkReturnsInterval is how often, in a cluster, accounts check whether to return their leases.
const checkReturnsInterval = 5 * time.Second

// startSweeper starts the goroutines.
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

// end stops the goroutines and waits for them.
func (s *idleSweeper) end() {
	close(s.stop)
	s.done.Wait()
}

package accounts

import (
	"sync"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
)

// idleSweeper are the goroutines that send the shards Sweep, and in a cluster CheckReturns.
type idleSweeper struct {
	stop chan struct{}
	done sync.WaitGroup
}

// sweepEvery is how often idle accounts are evicted: one that was not asked for SweepsIdle sweeps, two minutes.
const sweepEvery = 30 * time.Second

// checkReturnsEvery is how often the accounts of a cluster are asked whether to return their leases.
const checkReturnsEvery = 5 * time.Second

// startSweeper starts the goroutines.
func startSweeper(cluster bool, shards []*mailbox.Ref) *idleSweeper {
	s := &idleSweeper{stop: make(chan struct{})}
	s.done.Add(1)
	go s.run(sweepEvery, func() mailbox.Message { return &Sweep{} }, shards)
	if cluster {
		s.done.Add(1)
		go s.run(checkReturnsEvery, func() mailbox.Message { return &CheckReturns{} }, shards)
	}
	return s
}

func (s *idleSweeper) run(every time.Duration, word func() mailbox.Message, shards []*mailbox.Ref) {
	defer s.done.Done()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		for _, shard := range shards {
			shard.Send(word())
		}
	}
}

// end stops the goroutines and waits for them.
func (s *idleSweeper) end() {
	close(s.stop)
	s.done.Wait()
}

package accounts

import (
	"sync"
	"time"

	"github.com/tasard/tasard/actors/mailbox"
)

// sweeper is the goroutine that tells the shards when to put idle accounts aside, and in a cluster another one that tells them when to ask
// the others for their leases.
type sweeper struct {
	stop chan struct{}
	done sync.WaitGroup
}

// roundEvery is how often the accounts of a cluster are asked whether they rest from their lease.
const roundEvery = 5 * time.Second

// startSweeper begins; in a cluster it goes its rounds as well.
func startSweeper(every time.Duration, cluster bool, shards []*mailbox.Ref) *sweeper {
	s := &sweeper{stop: make(chan struct{})}
	s.done.Add(1)
	go s.run(every, func() mailbox.Message { return &Sweep{} }, shards)
	if cluster {
		s.done.Add(1)
		go s.run(roundEvery, func() mailbox.Message { return &Round{} }, shards)
	}
	return s
}

func (s *sweeper) run(every time.Duration, word func() mailbox.Message, shards []*mailbox.Ref) {
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

// end waits until nobody is told any more.
func (s *sweeper) end() {
	close(s.stop)
	s.done.Wait()
}

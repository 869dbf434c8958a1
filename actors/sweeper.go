package actors

import (
	"sync"
	"time"
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
func startSweeper(every time.Duration, cluster bool, shards []*ref) *sweeper {
	s := &sweeper{stop: make(chan struct{})}
	s.done.Add(1)
	go s.run(every, func() letter { return &sweep{} }, shards)
	if cluster {
		s.done.Add(1)
		go s.run(roundEvery, func() letter { return &round{} }, shards)
	}
	return s
}

func (s *sweeper) run(every time.Duration, word func() letter, shards []*ref) {
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
			shard.send(word())
		}
	}
}

// end waits until nobody is told any more.
func (s *sweeper) end() {
	close(s.stop)
	s.done.Wait()
}

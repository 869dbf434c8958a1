package actors

import (
	"sync"
	"time"
)

// sweeper is the goroutine that tells the shards when to put idle accounts aside.
type sweeper struct {
	stop chan struct{}
	done sync.WaitGroup
}

func startSweeper(every time.Duration, shards []*ref) *sweeper {
	s := &sweeper{stop: make(chan struct{})}
	s.done.Add(1)
	go s.run(every, shards)
	return s
}

func (s *sweeper) run(every time.Duration, shards []*ref) {
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
			shard.send(&sweep{})
		}
	}
}

// end waits until nobody is told any more.
func (s *sweeper) end() {
	close(s.stop)
	s.done.Wait()
}

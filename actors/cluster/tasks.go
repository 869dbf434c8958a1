package cluster

import "sync"

// taskGroup runs goroutines and waits for their end.
type taskGroup struct {
	mu     sync.Mutex
	closed bool
	group  sync.WaitGroup
}

// start runs f in a goroutine. After the first call of wait it starts nothing and returns false.
func (g *taskGroup) start(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.group.Go(f)
	}
	return !g.closed
}

func (g *taskGroup) wait() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.group.Wait()
}

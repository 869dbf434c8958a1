//go:build !nocluster

package cluster

import "sync"

// tasks is the goroutines of a cluster. Close waits for them; after that none begins.
type taskGroup struct {
	mu     sync.Mutex
	closed bool
	group  sync.WaitGroup
}

// running runs f, unless the crew has gone home.
func (w *taskGroup) start(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.group.Go(f)
	}
	return !w.closed
}

func (w *taskGroup) wait() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.group.Wait()
}

//go:build !nocluster

package cluster

import "sync"

// taskGroup owns the goroutines of a cluster. After wait it starts no more.
type taskGroup struct {
	mu     sync.Mutex
	closed bool
	group  sync.WaitGroup
}

// start runs f in a goroutine, or returns false after wait was called.
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

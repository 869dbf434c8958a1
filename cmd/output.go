package cmd

import (
	"io"
	"sync"
)

// output remembers the first error, so that a command can write line by line and be judged at the end.
type output struct {
	to     io.Writer
	mu     sync.Mutex // one text at a time
	failed error
}

// Write writes until something fails.
func (o *output) Write(bytes []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return 0, o.failed
	}
	n, err := o.to.Write(bytes)
	o.failed = err
	return n, err
}

// failure is the first error.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

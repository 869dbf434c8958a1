package terminal

import (
	"io"
	"sync"
)

// Output remembers the first error, so that a command can write line by line and be judged at the end.
type Output struct {
	To     io.Writer
	mu     sync.Mutex // one text at a time
	failed error
}

// Write writes until something fails.
func (o *Output) Write(bytes []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return 0, o.failed
	}
	n, err := o.To.Write(bytes)
	o.failed = err
	return n, err
}

// Failure is the first error.
func (o *Output) Failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

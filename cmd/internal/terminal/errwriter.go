package terminal

import (
	"io"
	"sync"
)

// ErrWriter remembers the first write error, so that a command can check once at the end.
type ErrWriter struct {
	W   io.Writer
	mu  sync.Mutex // one write at a time
	err error
}

// Write writes until a write has failed.
func (o *ErrWriter) Write(bytes []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.W.Write(bytes)
	o.err = err
	return n, err
}

// Err returns the first error.
func (o *ErrWriter) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

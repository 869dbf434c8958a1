package terminal

import (
	"io"
	"sync"
)

// ErrWriter remembers the first error, so that a command can write line by line and be judged at the end.
type ErrWriter struct {
	W   io.Writer
	mu  sync.Mutex // one text at a time
	err error
}

// Write writes until something fails.
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

// Err is the first error.
func (o *ErrWriter) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

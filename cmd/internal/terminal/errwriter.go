package terminal

import (
	"io"
	"sync"
)

// ErrWriter writes to W and keeps the first error, so that a command can check it once at the end. It is safe for
// concurrent use.
type ErrWriter struct {
	W   io.Writer
	mu  sync.Mutex
	err error
}

// Write implements io.Writer. After an error it writes no more.
func (w *ErrWriter) Write(bytes []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.W.Write(bytes)
	w.err = err
	return n, err
}

// Err returns the first error.
func (w *ErrWriter) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

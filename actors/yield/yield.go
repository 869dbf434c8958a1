package yield

import (
	"os"
	"runtime"
)

// Yielder lets other goroutines run, including goroutines that wait for a socket. The zero value is ready for use. It
// is not safe for concurrent use. The caller must call Close at the end.
type Yielder struct {
	w, r   *os.File
	polled chan struct{} // receives a value when waitForPoller has read a byte
}

// Yield returns after the network was polled and other goroutines that were ready have run. Without a pipe, for example
// because all file descriptors are in use, it only calls runtime.Gosched.
func (y *Yielder) Yield() {
	if y.w == nil && y.open() != nil {
		runtime.Gosched()
		return
	}
	if _, err := y.w.Write([]byte{0}); err != nil {
		y.Close()
		return
	}
	<-y.polled
}

func (y *Yielder) open() (err error) {
	if y.r, y.w, err = os.Pipe(); err != nil {
		return err
	}
	y.polled = make(chan struct{}, 1)
	go y.waitForPoller()
	runtime.Gosched() // it must wait before Yield writes the first byte, or it would read the byte without the poller
	return nil
}

// waitForPoller reads bytes from the pipe, and reports each byte on y.polled, until Close closes the pipe.
func (y *Yielder) waitForPoller() {
	defer close(y.polled)
	var buf [1]byte
	for {
		if _, err := y.r.Read(buf[:]); err != nil {
			return
		}
		runtime.Gosched() // let other goroutines that the poller has woken run first
		y.polled <- struct{}{}
	}
}

// Close closes the pipe and waits for its goroutine. The Yielder can be used again afterwards.
func (y *Yielder) Close() {
	if y.w == nil {
		return
	}
	_ = y.w.Close() // after an error waitForPoller ends as well
	for range y.polled {
		continue
	}
	_ = y.r.Close()
	y.w, y.r = nil, nil
}

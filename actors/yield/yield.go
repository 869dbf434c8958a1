package yield

import (
	"os"
	"runtime"
)

// Yielder lets other goroutines run, including goroutines that wait for a socket. The zero value is ready for use. It
// is not safe for concurrent use. The caller must call Close at the end.
type Yielder struct {
	w, r        *os.File
	polled      chan struct{} // receives a value when waitForPoller has read a byte
	unavailable bool          // the pipe failed: use runtime.Gosched instead
}

// Yield returns after the network was polled and other goroutines that were ready have run.
func (y *Yielder) Yield() {
	if y.w == nil && !y.unavailable {
		y.open()
	}
	if y.unavailable {
		runtime.Gosched()
		return
	}
	if _, err := y.w.Write([]byte{0}); err != nil {
		y.Close()
		y.unavailable = true
		return
	}
	<-y.polled
}

func (y *Yielder) open() {
	r, w, err := os.Pipe()
	if err != nil {
		y.unavailable = true
		return
	}
	y.r, y.w, y.polled = r, w, make(chan struct{}, 1)
	go y.waitForPoller()
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

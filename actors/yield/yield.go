package yield

import (
	"os"
	"runtime"
)

// Network yields to other goroutines, including goroutines that wait for a socket. The zero value is ready for use. It
// is not safe for concurrent use. The caller must call Close at the end.
type Network struct {
	w, r        *os.File
	polled      chan struct{} // receives a value when waitForPoller has read a byte
	unavailable bool          // the pipe failed: use runtime.Gosched instead
}

// Yield returns after the network was polled and other goroutines that were ready have run.
func (n *Network) Yield() {
	if n.w == nil && !n.unavailable {
		n.open()
	}
	if n.unavailable {
		runtime.Gosched()
		return
	}
	if _, err := n.w.Write([]byte{0}); err != nil {
		n.Close()
		n.unavailable = true
		return
	}
	<-n.polled
}

func (n *Network) open() {
	r, w, err := os.Pipe()
	if err != nil {
		n.unavailable = true
		return
	}
	n.r, n.w, n.polled = r, w, make(chan struct{}, 1)
	go n.waitForPoller()
}

// waitForPoller reads bytes from the pipe until Close closes it.
func (n *Network) waitForPoller() {
	defer close(n.polled)
	var buf [1]byte
	for {
		if _, err := n.r.Read(buf[:]); err != nil {
			return
		}
		runtime.Gosched() // let other goroutines that the poller has woken run first
		n.polled <- struct{}{}
	}
}

// Close closes the pipe and waits for its goroutine. The Network can be used again afterwards.
func (n *Network) Close() {
	if n.w == nil {
		return
	}
	_ = n.w.Close() // the goroutine ends even after an error
	for range n.polled {
		continue
	}
	_ = n.r.Close()
	n.w, n.r = nil, nil
}

package yield

import (
	"os"
	"runtime"
)

// Network yields to other goroutines, including those whose socket became ready but was not polled yet. The zero
// value is ready to use. It must not be used concurrently; Close it to release its pipe.
type Network struct {
	in, out     *os.File
	woken       chan struct{} // receives when the byte was read
	unavailable bool          // the pipe failed: use runtime.Gosched
}

// Yield returns after the waiting goroutines have run.
func (n *Network) Yield() {
	if n.in == nil && !n.unavailable {
		n.open()
	}
	if n.unavailable {
		runtime.Gosched()
		return
	}
	if _, err := n.in.Write([]byte{0}); err != nil {
		n.Close()
		n.unavailable = true
		return
	}
	<-n.woken
}

func (n *Network) open() {
	out, in, err := os.Pipe()
	if err != nil {
		n.unavailable = true
		return
	}
	n.out, n.in, n.woken = out, in, make(chan struct{}, 1)
	go n.waitForPoller()
}

// waitForPoller waits for the network poller until the pipe is closed.
func (n *Network) waitForPoller() {
	defer close(n.woken)
	var one [1]byte
	for {
		if _, err := n.out.Read(one[:]); err != nil {
			return
		}
		runtime.Gosched() // let the other goroutines woken by the poller run first
		n.woken <- struct{}{}
	}
}

// Close closes the pipe and waits for its goroutine. The Network can be used again afterwards.
func (n *Network) Close() {
	if n.in == nil {
		return
	}
	_ = n.in.Close() // the goroutine ends either way
	for range n.woken {
		continue
	}
	_ = n.out.Close()
	n.in, n.out = nil, nil
}

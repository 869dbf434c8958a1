package yield

import (
	"os"
	"runtime"
)

// Network lets every other goroutine run, also those whose request has arrived at a socket but was not looked at yet.
// The zero Network is ready; the pipe is made by the first Yield, and closed by Close. It belongs to one goroutine.
type Network struct {
	in, out     *os.File
	woken       chan struct{} // the byte has come round
	unavailable bool          // there is no pipe: runtime.Gosched must do
}

// Yield returns after those that wait have had their turn.
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
		runtime.Gosched() // behind those that the network has woken as well
		n.woken <- struct{}{}
	}
}

// Close waits until nothing is left of the pipe. The Network may be used again then.
func (n *Network) Close() {
	if n.in == nil {
		return
	}
	_ = n.in.Close() // what follows does not depend on it
	for range n.woken {
		continue
	}
	_ = n.out.Close()
	n.in, n.out = nil, nil
}

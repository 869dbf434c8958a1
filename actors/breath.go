package actors

import (
	"os"
	"runtime"
)

// Breath lets everybody else run for a moment, those too whose request has arrived at a socket but was not
// looked at yet. It is for whoever works long beside a System, such as the reading of a file. On a single
// processor runtime.Gosched alone does not do it: what yields stands in line again before the runtime asks
// the network, which then waits until it is asked every ten milliseconds. So whoever takes breath waits in
// the line of the network itself, for a byte of its own in a pipe.
//
// The zero Breath is ready; the pipe is made when breath is taken for the first time, and closed by End. It
// belongs to one goroutine.
type Breath struct {
	in, out *os.File
	turn    chan struct{} // the byte has come round
	broken  bool          // no pipe is to be had: yielding must do
}

// Take returns after those who wait have had their turn.
func (b *Breath) Take() {
	if b.in == nil && !b.broken {
		b.begin()
	}
	if b.broken {
		runtime.Gosched()
		return
	}
	if _, err := b.in.Write([]byte{0}); err != nil {
		b.End()
		b.broken = true
		return
	}
	<-b.turn
}

func (b *Breath) begin() {
	out, in, err := os.Pipe()
	if err != nil {
		b.broken = true
		return
	}
	b.out, b.in, b.turn = out, in, make(chan struct{}, 1)
	go b.listen()
}

// listen stands in the line of the network until the pipe is closed.
func (b *Breath) listen() {
	defer close(b.turn)
	var one [1]byte
	for {
		if _, err := b.out.Read(one[:]); err != nil {
			return
		}
		runtime.Gosched() // behind those that the network has woken as well
		b.turn <- struct{}{}
	}
}

// End waits until nothing is left of it. It may be used again then.
func (b *Breath) End() {
	if b.in == nil {
		return
	}
	_ = b.in.Close() // what follows does not depend on it
	for range b.turn {
		continue
	}
	_ = b.out.Close()
	b.in, b.out = nil, nil
}

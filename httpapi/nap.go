package httpapi

import (
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// nap is what a connection keeps so that it can fall asleep, and the server read later what it had read before.
//
// It may fall asleep where nothing that the server holds would be lost: between two requests, when no answer waits to be written, and
// within a request that came behind no other, and to which nothing was said. Of that all bytes are kept.
type nap struct {
	of     *sleepers // nil: it never sleeps
	kept   []byte    // what has come of a request that is not there as a whole
	unread int       // the last of these bytes, which the server is to read again
	ending error     // what ended the sleep: the server reads it behind them
	before int       // requests before the last sleep
	early  bool      // the deadline that is armed is a bedtime
	until  time.Time // when a request has to be there that was slept in; zero: there is none

	falls  atomic.Bool // the server was told errAsleep
	tended atomic.Bool // it has a goroutine of sleepers
	begun  atomic.Bool // something of a request is there
}

// keeps tells that all is kept of what came behind the last answer.
func (g *gatherer) keeps() bool {
	return g.nap.of != nil && (len(g.nap.kept) > 0 || g.wire.idle())
}

// mayFall tells that a connection of which all is kept may fall asleep. What the guard is going to refuse is left to it.
func (g *gatherer) mayFall() bool {
	return len(g.nap.kept) < g.nap.of.keptMax && g.wire.fault == 0
}

// handDrowsily reads what the client has said, unless that takes so long that the connection falls asleep.
func (g *gatherer) handDrowsily(b []byte) (int, error) {
	if g.nap.early && !g.read.armed.After(g.read.wanted) { // it is not asked when, before it may be time
		read, err := g.Conn.Read(b)
		if err == nil || read > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return read, err
		}
	}
	deadline := g.read.wanted
	g.read.wanted = g.nap.of.bedtime(deadline, len(g.nap.kept) == 0 && g.wire.begun > g.nap.before)
	read, err := g.lazyDeadlines.Read(b)
	early := err != nil && g.read.wanted.Before(deadline)
	g.read.wanted, g.nap.early = deadline, true
	if early && read == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		g.nap.falls.Store(true)
		return 0, errAsleep
	}
	return read, err
}

// keep keeps what was read behind all that is kept, unless a request has ended in it.
func (g *gatherer) keep(b []byte) {
	n := &g.nap
	if g.wire.ended != g.wire.begun || len(n.kept)+len(b) > n.of.keptMax {
		n.kept = nil
		return
	}
	n.kept = append(n.kept, b...)
}

// forget is called when a request is there: it is not to be read again.
func (n *nap) forget() { n.kept, n.until = nil, time.Time{} }

// again gives the server what it had read before the connection slept.
func (g *gatherer) again(b []byte) int {
	n := &g.nap
	read := copy(b, n.kept[len(n.kept)-n.unread:])
	n.unread -= read
	return read
}

// await reads for a connection that sleeps, until the server has something to do: a request is there, or its head, its time is over, or it
// is one to be refused. False: there is nobody to be answered.
func (g *gatherer) await() bool {
	n := &g.nap
	n.before, n.early = g.wire.begun, false
	n.begun.Store(len(n.kept) > 0)
	// What comes first of another request has its time from now on: the server says until when.
	another, inHead := len(n.kept) == 0 && g.wire.begun > 0, !g.wire.inBody()
	var err error
	for err == nil && g.mayWait(inHead) && !(another && len(n.kept) > 0) {
		err = g.awaitMore()
	}
	n.unread, n.ending = len(n.kept), err
	if !another {
		n.until = g.read.wanted
	}
	late := errors.Is(err, os.ErrDeadlineExceeded)
	if late {
		n.unread = 0 // it is told so, whatever it was going to be
	}
	// Whoever asked before knows that connections end. Newcomers are told.
	return len(n.kept) > 0 || late && g.wire.begun == 0
}

// mayWait tells that the server has nothing to do yet.
func (g *gatherer) mayWait(inHead bool) bool {
	w := &g.wire
	return w.ended == w.begun && w.fault == 0 && inHead == !w.inBody() && len(g.nap.kept) < g.nap.of.keptMax
}

// awaitMore reads once, in the time that there is.
func (g *gatherer) awaitMore() error {
	n := &g.nap
	at := len(n.kept)
	if cap(n.kept)-at < sleepRoom/4 {
		n.kept = slices.Grow(n.kept, sleepRoom)
	}
	read, err := g.lazyDeadlines.Read(n.kept[at:cap(n.kept)])
	if read == 0 {
		return err
	}
	n.kept = n.kept[:at+read]
	n.begun.Store(true)
	g.wire.follow(n.kept[at:])
	return nil
}

package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// target is a server that runs, as the load sees it.
type target struct {
	name    string // node, bare, nginx, postgres, or an address that was given
	address string // host:port
	// processes are those whose CPU time is the server's: the one that was started, and others that work for it (PostgreSQL's).
	// None when they are not on this machine.
	processes []int
	// mallocs reads how many objects the server has allocated since its start; nil when it can't be asked.
	mallocs func(context.Context) (uint64, error)
}

// contender takes part in a comparison: it starts a target on one core, and ends it.
type contender interface {
	// name is that of its target.
	name() string
	// missing says what is not installed, "" when nothing is.
	missing() string
	// start returns when the target answers.
	start(ctx context.Context, core int) (*target, error)
	// stop ends what start started and waits for it; nothing started is nothing to do.
	stop() error
}

// question is a kind of request of a mix.
type question struct {
	// operation names it in reports: best, convert, ...
	operation string
	// weight is how often it is asked among the others.
	weight int
	// path is the request target. With amounts a new amount is appended to it each time.
	path    string
	amounts bool
	// lines are headers besides Host and Authorization, each with its CR LF.
	lines string
}

// asker makes the requests of one run, one after the other: the same seed makes the same requests.
type asker interface {
	// next appends the next request as it goes over the wire.
	next(dst []byte, random *rand.Rand) []byte
}

// load is one run against one target.
type load struct {
	address     string
	asker       asker
	seed        uint64
	connections int
	// rate is how many requests a second are sent, each at its intended moment and timed from there, so that a server that
	// stops for a while is charged for all that would have come (no coordinated omission). 0: each connection sends as soon
	// as its answer is there.
	rate float64
	// warmup is not counted.
	warmup, measure time.Duration
	// begins is called just before the measured time begins, and ends when the last answer of it is there: the moments to read
	// the target's CPU time and its counters. The load stands still meanwhile, and no request is charged for that. Both may be nil.
	begins, ends func() error
}

// tally is what came back within the measured time.
type tally struct {
	answers  uint64
	statuses map[int]uint64
	lost     uint64 // connections that ended, and answers that are none
	bytes    uint64
	elapsed  time.Duration
	// latency is in nanoseconds: from the sending, at a rate from the intended moment.
	latency *hdrhistogram.Histogram
	// generator is the CPU time of the thread that asked. Without a rate: near to elapsed, the load is what limits, not the target.
	generator time.Duration
}

// sample is a tally with what it cost the target.
type sample struct {
	tally
	cpu     time.Duration // of the target's processes
	mallocs uint64        // objects allocated meanwhile; 0 when unknown
}

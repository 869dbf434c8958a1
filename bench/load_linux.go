package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

const (
	// loadTick is how long the load sleeps at most, before it looks at its context and at connections that don't come about.
	loadTick = 20 * time.Millisecond
	// loadSpin is how long before a moment it stops sleeping and only looks: a sleep ends 15 to 40 µs late on a virtual machine,
	// now and then 100, and the target would be charged for it.
	loadSpin = 100 * time.Microsecond
	// loadReadBytes is read at once: a whole answer, as a rule.
	loadReadBytes = 64 << 10
	// loadLatencyMax is the longest that is told apart.
	loadLatencyMax = 60 * time.Second
	// loadDigits is how exact latencies are kept: three digits from the first nanosecond on, so that a microsecond has them too.
	loadDigits = 3
)

var (
	errGone     = errors.New("the target is gone")
	errSilent   = errors.New("the target has answered nothing")
	errClosed   = errors.New("it ended the connection before its answer")
	errUnasked  = errors.New("it sent something that nobody had asked for")
	errTooSoon  = errors.New("it answered before it had the whole request")
	errPatience = errors.New("it did not accept a connection in time")
)

// driver is a load under way. All of it belongs to one goroutine, on one thread.
//
// What is counted: requests that were sent, at a rate were to be sent, within the measured time; whenever their answer came.
type driver struct {
	*load
	place    place
	patience time.Duration
	poll     *poller
	random   *rand.Rand
	began    time.Time // all other moments are counted from it
	lines    []line
	free     ring // at a rate: lines that wait for a moment
	buffer   []byte

	// moment 0 is at base, and moment n at base + n × period. next is the first that nothing was sent for. Those from opens to
	// closes are counted. Before the load begins closes is 0, so that nothing is sent.
	base          time.Duration
	period        float64 // nanoseconds
	next          uint64
	opens, closes time.Duration
	asking        bool // without a rate: answers are followed by requests
	measuring     bool // without a rate: what is sent is counted

	waiting, owed int // requests in flight; those of them that are counted
	dialling      int // lines that are being connected
	troubles      int // connections lost since the last answer
	lastTrouble   error
	lastAnswer    time.Duration // when the last counted answer came

	everSent, everAnswered, everLost uint64 // counted or not

	answers, lost, bytes uint64
	statuses             [statusCount]uint64
	latency              *hdrhistogram.Histogram
}

// drive is run with a patience.
func (l *load) drive(ctx context.Context, patience time.Duration) (*tally, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer punctual()()
	d, err := newDriver(ctx, l, patience)
	if err != nil {
		return nil, err
	}
	defer d.close()
	t, err := d.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("load on %s: %w", l.address, err)
	}
	return t, nil
}

func newDriver(ctx context.Context, l *load, patience time.Duration) (*driver, error) {
	place, err := findPlace(ctx, l.address)
	if err != nil {
		return nil, err
	}
	poll, err := newPoller(l.connections)
	if err != nil {
		return nil, err
	}
	d := &driver{
		load: l, place: place, patience: patience, poll: poll,
		random:  rand.New(rand.NewPCG(l.seed, 0)),
		began:   time.Now(),
		lines:   make([]line, l.connections),
		free:    ring{numbers: make([]int, l.connections)},
		buffer:  make([]byte, loadReadBytes),
		opens:   math.MaxInt64,
		latency: hdrhistogram.New(1, int64(loadLatencyMax), loadDigits),
	}
	if l.rate > 0 {
		d.period = float64(time.Second) / l.rate
	}
	for i := range d.lines {
		d.lines[i] = line{number: i, socket: -1}
	}
	return d, nil
}

func (d *driver) close() {
	for i := range d.lines {
		if d.lines[i].socket >= 0 {
			_ = unix.Close(d.lines[i].socket)
		}
	}
	d.poll.close()
}

func (d *driver) now() time.Duration { return time.Since(d.began) }

// run connects, warms up, measures, and waits for what is owed.
func (d *driver) run(ctx context.Context) (*tally, error) {
	if err := d.connect(ctx); err != nil {
		return nil, err
	}
	if err := d.warmUp(ctx); err != nil {
		return nil, err
	}
	used := threadTime()
	if err := d.pump(ctx, d.closes, nil); err != nil {
		return nil, err
	}
	d.asking = false
	ended := d.now()
	if err := d.pump(ctx, ended+d.patience, d.settled); err != nil {
		return nil, err
	}
	used = threadTime() - used
	d.giveUp()
	if d.ends != nil {
		if err := d.ends(); err != nil {
			return nil, err
		}
	}
	if d.everAnswered == 0 {
		return nil, fmt.Errorf("%w: %d requests in %v", errSilent, d.everSent, d.now().Round(time.Millisecond))
	}
	return d.tally(ended, used), nil
}

// connect opens all lines and waits for them.
func (d *driver) connect(ctx context.Context) error {
	for i := range d.lines {
		if err := d.dial(&d.lines[i]); err != nil {
			return err
		}
	}
	return d.pump(ctx, math.MaxInt64, func() bool { return d.dialling == 0 })
}

// warmUp lets the load come, and at its end the measured time begins. Without a warm-up the first request is counted.
func (d *driver) warmUp(ctx context.Context) error {
	if d.warmup == 0 {
		if err := d.open(); err != nil {
			return err
		}
		return d.begin(d.opens)
	}
	d.closes = math.MaxInt64
	if err := d.begin(d.now()); err != nil {
		return err
	}
	if err := d.pump(ctx, d.base+d.warmup, nil); err != nil {
		return err
	}
	return d.open()
}

// begin sends the first requests. At a rate the moments come by themselves, the first one now.
func (d *driver) begin(now time.Duration) error {
	d.base, d.asking = now, true
	if d.rate > 0 {
		return nil
	}
	for i := range d.lines {
		if c := &d.lines[i]; c.phase == lineFree {
			if err := d.ask(c, d.now(), d.measuring); err != nil {
				return err
			}
		}
	}
	return nil
}

// open begins the measured time. The moments are moved by what begins takes.
func (d *driver) open() error {
	stood := d.now()
	if d.begins != nil {
		if err := d.begins(); err != nil {
			return err
		}
	}
	d.opens = d.now()
	d.closes = d.opens + d.measure
	d.base += d.opens - stood
	d.measuring = true
	return nil
}

// pump sends and receives until a moment, or until it is done.
func (d *driver) pump(ctx context.Context, end time.Duration, done func() bool) error {
	for looked := d.now(); done == nil || !done(); {
		now := d.now()
		if now >= end {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.sendDue(now); err != nil {
			return err
		}
		events, err := d.poll.wait(d.pause(now, end))
		if err != nil {
			return err
		}
		for i := range events {
			if err := d.handle(&d.lines[events[i].Fd], events[i].Events); err != nil {
				return err
			}
		}
		// After the events: a connection that came about while this thread had to wait is not late.
		if now-looked > loadTick {
			looked = now
			if err := d.impatient(now); err != nil {
				return err
			}
		}
	}
	return nil
}

// pause is how long nothing needs to be done. At a rate it sleeps only while no answer is awaited: waking up takes longer than many
// an answer, and would be part of its latency.
func (d *driver) pause(now, end time.Duration) time.Duration {
	longest := min(end-now, loadTick)
	if d.rate == 0 {
		return longest
	}
	if d.waiting > 0 {
		return 0
	}
	if moment := d.moment(d.next); moment < d.closes {
		return min(longest, moment-d.now()-loadSpin) // sending has taken time
	}
	return longest
}

// settled tells that nothing is owed any more.
func (d *driver) settled() bool {
	return d.owed == 0 && (d.rate == 0 || d.moment(d.next) >= d.closes)
}

// giveUp counts as lost what is still owed: requests in flight, and at a rate those whose moment has passed.
func (d *driver) giveUp() {
	for i := range d.lines {
		if c := &d.lines[i]; c.phase == lineWaits {
			d.forget(c)
		}
	}
	if d.rate == 0 {
		return
	}
	for ; d.moment(d.next) < d.closes; d.next++ {
		if d.moment(d.next) >= d.opens {
			d.lost++
		}
	}
}

// tally is what was counted. At a rate the time goes on until the last answer: a target that is behind is not faster for it.
func (d *driver) tally(ended, used time.Duration) *tally {
	if d.rate > 0 {
		ended = max(d.closes, d.lastAnswer)
	}
	t := &tally{
		answers: d.answers, statuses: map[int]uint64{}, lost: d.lost, bytes: d.bytes,
		elapsed: ended - d.opens, latency: d.latency, generator: used,
	}
	for status, count := range d.statuses {
		if count > 0 {
			t.statuses[status] = count
		}
	}
	return t
}

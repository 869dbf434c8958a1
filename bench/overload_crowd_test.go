//go:build faults && linux

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// group is a part of a crowd: clients of one kind that ask at a rate together, each on one connection and from a source address that it
// shares with few others. A request whose moment comes while all of them wait for an answer is not sent: to the server it is one that it
// did not read.
type group struct {
	name        string
	asker       asker
	connections int
	rate        float64       // requests a second; 0: each asks again as soon as it has its answer
	fresh       bool          // a new connection for each request
	from        time.Duration // when it begins
	net         byte          // its source addresses are 127.net.0.0/16
	perAddress  int

	free  ring
	next  uint64
	found groupTally
}

// crowdCounts are requests of a group, by what became of them.
type crowdCounts struct {
	intended, sent, unread   uint64 // unread: never sent, no client was free
	served, refused, strange uint64 // 200; 503 as it must be; everything else
	lost                     uint64 // connections that ended, and requests without an answer at the end
}

// groupTally is what a group met. Latencies are from the intended moment to the answer.
type groupTally struct {
	crowdCounts
	latency *hdrhistogram.Histogram
	first   string // the first strange answer
}

func (g *groupTally) String() string {
	return fmt.Sprintf("%+v, p50 %v, p99 %v", g.crowdCounts, g.quantile(50), g.quantile(99))
}

// add counts what another one met.
func (g *groupTally) add(other *groupTally) {
	g.intended, g.sent, g.unread = g.intended+other.intended, g.sent+other.sent, g.unread+other.unread
	g.served, g.refused, g.strange = g.served+other.served, g.refused+other.refused, g.strange+other.strange
	g.lost += other.lost
	g.latency.Merge(other.latency)
	g.first = cmp.Or(g.first, other.first)
}

func (g *groupTally) quantile(q float64) time.Duration {
	return time.Duration(g.latency.ValueAtQuantile(q)).Round(10 * time.Microsecond)
}

// share is how many of the requests that were to be sent were served.
func (g *group) share() float64 { return float64(g.found.served) / float64(max(1, g.found.intended)) }

// crowd is a load of several groups. All of it belongs to one goroutine, on one thread: goroutines of their own for thousands of
// connections were tried, and their clients asked too late to keep the node busy.
type crowd struct {
	target  place
	groups  []*group
	lines   []line
	of      []*group // of each line
	sources []place  // of each line
	poll    *poller
	random  *rand.Rand
	began   time.Time
	ends    time.Duration
	buffer  []byte
}

func (c *crowd) now() time.Duration { return time.Since(c.began) }

// runCrowd puts the groups on a server for a while, then waits for what is owed, at most as long as patience.
func runCrowd(t *testing.T, address string, span, patience time.Duration, groups ...*group) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer preferred()()
	target, err := findPlace(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, g := range groups {
		total += g.connections
	}
	poll, err := newPoller(total)
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{target: target, groups: groups, poll: poll, random: rand.New(rand.NewPCG(1, 2)), began: time.Now(), buffer: make([]byte, loadReadBytes)}
	defer func() {
		for i := range c.lines {
			if c.lines[i].socket >= 0 {
				_ = unix.Close(c.lines[i].socket)
			}
		}
		poll.close()
	}()
	if err := c.connect(total); err != nil {
		t.Fatal(err)
	}
	if err := c.run(span, patience); err != nil {
		t.Fatal(err)
	}
}

// crowdEarly is how long before a moment a crowd that waits is there: the kernel may wake it 50 µs late.
const crowdEarly = 100 * time.Microsecond

// preferred puts the thread on its core and into a control group that comes before whatever else the machine does, so that moments are
// kept, and returns what undoes it. What can't be done is left: the figures are worse for it, never better.
func preferred() (undo func()) {
	thread, all := []byte(strconv.Itoa(unix.Gettid())), filepath.Join(cgroupRoot, "cpu")
	var cores, mine unix.CPUSet
	if unix.SchedGetaffinity(0, &cores) == nil && cores.Count() > 1 {
		mine.Set(crowdCore)
		_ = unix.SchedSetaffinity(0, &mine)
	}
	first := filepath.Join(all, "tasard-crowd-"+string(thread))
	if os.Mkdir(first, 0o755) == nil {
		_ = os.WriteFile(filepath.Join(first, "cpu.shares"), []byte(strconv.Itoa(cpuShares)), 0o600)
		_ = os.WriteFile(filepath.Join(first, "tasks"), thread, 0o600)
	}
	return func() {
		_ = unix.SchedSetaffinity(0, &cores)
		_ = os.WriteFile(filepath.Join(all, "tasks"), thread, 0o600)
		_ = os.Remove(first)
	}
}

// connect opens the lines of every group that keeps its connections.
func (c *crowd) connect(total int) error {
	c.lines = make([]line, total)
	for _, g := range c.groups {
		g.found, g.next = groupTally{latency: hdrhistogram.New(1, int64(loadLatencyMax), loadDigits)}, 0
		g.free = ring{numbers: make([]int, total)}
		for i := range g.connections {
			l := &c.lines[len(c.of)]
			*l = line{number: len(c.of), socket: -1, phase: lineFree}
			source := netip.AddrFrom4([4]byte{127, g.net, byte(i / g.perAddress / 250), byte(1 + i/g.perAddress%250)})
			c.of, c.sources = append(c.of, g), append(c.sources, placeOf(source, 0))
			if !g.fresh {
				if err := c.dial(l); err != nil {
					return err
				}
			}
		}
	}
	for deadline := c.now() + loadPatience; c.count(lineDials) > 0; {
		if c.now() > deadline {
			return fmt.Errorf("%d connections did not come about", c.count(lineDials))
		}
		if err := c.turn(loadTick); err != nil {
			return err
		}
	}
	return nil
}

// count is how many lines are in a phase.
func (c *crowd) count(p phase) (count int) {
	for i := range c.lines {
		if c.lines[i].phase == p {
			count++
		}
	}
	return count
}

// dial begins to connect from the line's own address.
func (c *crowd) dial(l *line) error {
	socket, err := unix.Socket(c.target.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	_ = unix.SetsockoptInt(socket, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	_ = unix.SetsockoptInt(socket, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	if err := unix.Bind(socket, c.sources[l.number].address); err != nil {
		return fmt.Errorf("bind to an address of its own: %w", err)
	}
	if err := unix.Connect(socket, c.target.address); err != nil && err != unix.EINPROGRESS {
		return fmt.Errorf("connect: %w", err)
	}
	l.socket, l.phase, l.received = socket, lineDials, 0
	l.answer.reset()
	return c.poll.add(socket, l.number, unix.EPOLLOUT)
}

// run asks for a while, then waits for what is owed.
func (c *crowd) run(span, patience time.Duration) error {
	base := c.now()
	c.ends = base + span
	for i := range c.lines {
		if err := c.ready(&c.lines[i]); err != nil {
			return err
		}
	}
	for c.now() < c.ends {
		for _, g := range c.groups {
			if err := c.sendDue(g, base); err != nil {
				return err
			}
		}
		if err := c.turn(c.pause(base)); err != nil {
			return err
		}
	}
	for last := c.ends + patience; c.count(lineWaits) > 0 && c.now() < last; {
		if err := c.turn(loadTick); err != nil {
			return err
		}
	}
	for i := range c.lines {
		if l := &c.lines[i]; l.phase == lineWaits || l.phase == lineDials && c.of[i].fresh {
			c.of[i].found.lost++
		}
	}
	return nil
}

// pause is how long there is nothing to send. A crowd that asks seldom leaves its core to those who are there beside it; the moments of one
// that asks often are so near that it only looks.
func (c *crowd) pause(base time.Duration) time.Duration {
	next := c.ends
	for _, g := range c.groups {
		if g.rate == 0 {
			return 0
		}
		next = min(next, c.moment(g, base))
	}
	return next - c.now() - crowdEarly
}

// moment is when a group's next request is due.
func (c *crowd) moment(g *group, base time.Duration) time.Duration {
	return base + g.from + time.Duration(float64(g.next)/g.rate*float64(time.Second))
}

// sendDue sends what a group was to have sent by now, as far as a line is free.
func (c *crowd) sendDue(g *group, base time.Duration) error {
	for g.rate > 0 {
		moment := c.moment(g, base)
		if moment > c.now() || moment >= c.ends {
			return nil
		}
		g.next++
		g.found.intended++
		l, err := g.free.pop(c.lines), error(nil)
		switch {
		case l == nil:
			g.found.unread++
		case g.fresh:
			l.since = moment
			err = c.dial(l)
		default:
			err = c.ask(l, moment)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ready lets a line that is free wait for a moment, or ask at once.
func (c *crowd) ready(l *line) error {
	if c.of[l.number].rate > 0 {
		c.of[l.number].free.push(l)
		return nil
	}
	if c.now() < c.ends {
		return c.ask(l, c.now())
	}
	return nil
}

func (c *crowd) ask(l *line, since time.Duration) error {
	g := c.of[l.number]
	l.request = g.asker.next(l.request[:0], c.random)
	l.phase, l.since, l.received = lineWaits, since, 0
	g.found.sent++
	if n, err := unix.Write(l.socket, l.request); err != nil || n < len(l.request) {
		return c.lose(l)
	}
	return nil
}

// turn handles what has happened.
func (c *crowd) turn(longest time.Duration) error {
	events, err := c.poll.wait(longest)
	for i := 0; i < len(events) && err == nil; i++ {
		err = c.handle(&c.lines[events[i].Fd])
	}
	return err
}

func (c *crowd) handle(l *line) error {
	if l.phase == lineDials {
		if err := dialled(l.socket); err != nil {
			return c.lose(l)
		}
		if err := c.poll.change(l.socket, l.number, unix.EPOLLIN); err != nil {
			return err
		}
		if l.phase = lineFree; c.of[l.number].fresh {
			return c.ask(l, l.since)
		}
		return c.ready(l)
	}
	n, err := unix.Read(l.socket, c.buffer)
	if err != nil && again(err) {
		return nil
	}
	if err != nil || n == 0 || l.phase != lineWaits {
		return c.lose(l)
	}
	begins := l.received == 0
	l.received += n
	whole, err := l.answer.feed(c.buffer[:n])
	if err != nil {
		return c.lose(l)
	}
	if !whole {
		return nil
	}
	c.of[l.number].found.count(l.answer.status, c.buffer[:n], begins, c.now()-l.since)
	if l.answer.last || c.of[l.number].fresh {
		return c.renew(l)
	}
	l.answer.reset()
	l.phase = lineFree
	return c.ready(l)
}

// lose counts a connection that ended without an answer.
func (c *crowd) lose(l *line) error {
	if g := c.of[l.number]; l.phase == lineWaits || l.phase == lineDials && g.fresh {
		g.found.lost++
	}
	return c.renew(l)
}

// renew ends a connection and opens the next one; a line with fresh ones does so at its next moment.
func (c *crowd) renew(l *line) error {
	_ = unix.Close(l.socket)
	if !c.of[l.number].fresh {
		return c.dial(l)
	}
	l.socket, l.phase = -1, lineFree
	l.answer.reset()
	return c.ready(l)
}

// refusalPattern is what a refusal must have in its head.
var refusalPattern = regexp.MustCompile(`^HTTP/1\.1 503 [^\r\n]*\r\n(?s:.*)\r\nRetry-After: [1-9][0-9]*\r\n`)

// count counts an answer. One that is no 200 must be the refusal that is promised.
func (g *groupTally) count(status int, answer []byte, whole bool, took time.Duration) {
	switch {
	case status == 200:
		g.served++
		_ = g.latency.RecordValue(int64(min(max(took, 1), loadLatencyMax)))
		return
	case status == 503 && whole && isRefusal(answer):
		g.refused++
		return
	}
	g.strange++
	if g.first == "" {
		g.first = fmt.Sprintf("%.600q", answer)
	}
}

func isRefusal(answer []byte) bool {
	head, body, found := bytes.Cut(answer, []byte("\r\n\r\n"))
	var said struct {
		Error struct{ Code, Message, RequestID string }
	}
	return found && refusalPattern.Match(append(head, "\r\n"...)) && json.Unmarshal(body, &said) == nil &&
		said.Error.Code == "overloaded" && said.Error.RequestID != "" && bytes.Contains(head, []byte("application/json"))
}

//go:build faults && linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"
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

	mu     sync.Mutex
	random *rand.Rand
	found  groupTally
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

// crowdIdle is how long a connection is trusted without a request: the node closes those that are slow with one.
const crowdIdle = 4 * time.Second

// crowdClient is one client of a group: a connection, and a goroutine that waits for its moments.
type crowdClient struct {
	*group
	dialer  net.Dialer
	address string
	moments chan time.Time

	conn     net.Conn
	used     time.Time // when it was opened, or last asked on
	reader   *bufio.Reader
	response fasthttp.Response
}

// runCrowd puts the groups on a server for a while, then waits for what is owed, at most as long as patience.
func runCrowd(t *testing.T, address string, span, patience time.Duration, groups ...*group) {
	t.Helper()
	var running sync.WaitGroup
	ready := make(chan error)
	begin := make(chan time.Time)
	for _, g := range groups {
		g.found, g.random = groupTally{latency: hdrhistogram.New(1, int64(loadLatencyMax), loadDigits)}, rand.New(rand.NewPCG(1, 2))
		free := make(chan *crowdClient, g.connections)
		for i := range g.connections {
			source := net.IPv4(127, g.net, byte(i/g.perAddress/250), byte(1+i/g.perAddress%250))
			c := &crowdClient{group: g, address: address, moments: make(chan time.Time, 1)}
			c.dialer = net.Dialer{LocalAddr: &net.TCPAddr{IP: source}, Timeout: loadPatience}
			running.Go(func() { c.run(free, ready, span, patience) })
			if err := <-ready; err != nil {
				t.Error(err)
			}
		}
		running.Go(func() { g.send(<-begin, span, free) })
	}
	defer preferred()()
	began := time.Now()
	for range groups {
		begin <- began
	}
	running.Wait()
}

// send hands each moment of a group to a client that is free, and ends the clients when the time is over. Without a rate each client
// is given one moment, and goes on by itself.
func (g *group) send(began time.Time, span time.Duration, free chan *crowdClient) {
	ends, next := began.Add(span), began.Add(g.from)
	for n := 1; next.Before(ends) && (g.rate > 0 || n <= g.connections); n++ {
		if wait := time.Until(next); wait > 0 {
			<-time.NewTimer(wait).C
		}
		g.found.intended++
		select {
		case c := <-free:
			c.moments <- next
		default:
			g.found.unread++
		}
		if g.rate > 0 {
			next = began.Add(g.from + time.Duration(float64(n)/g.rate*float64(time.Second)))
		}
	}
	for range g.connections {
		close((<-free).moments)
	}
}

// run connects, says so, and asks at each of its moments until there are no more.
func (c *crowdClient) run(free chan *crowdClient, ready chan error, span, patience time.Duration) {
	var err error
	if !c.fresh {
		err = c.connect()
	}
	free <- c
	ready <- err
	for moment := range c.moments {
		ends, last := moment.Add(span), moment.Add(span+patience) // of a client without a rate
		for c.ask(moment, last); c.rate == 0 && time.Now().Before(ends); c.ask(moment, last) {
			moment = time.Now()
		}
		free <- c
	}
	if c.conn != nil {
		c.conn.Close()
	}
}

func (c *crowdClient) connect() error {
	conn, err := c.dialer.Dial("tcp", c.address)
	if err == nil {
		c.conn, c.used, c.reader = conn, time.Now(), bufio.NewReaderSize(conn, 4<<10)
	}
	return err
}

// ask sends a request and counts its answer. A connection that ended is opened anew.
func (c *crowdClient) ask(moment, last time.Time) {
	c.mu.Lock()
	request := c.asker.next(nil, c.random)
	c.found.sent++
	c.mu.Unlock()
	var err error
	if c.conn != nil && time.Since(c.used) > crowdIdle {
		c.conn.Close()
		c.conn = nil
	}
	if c.conn == nil {
		err = c.connect()
	}
	if err == nil {
		_ = c.conn.SetDeadline(last)
		_, err = c.conn.Write(request)
	}
	if err == nil {
		err = c.response.Read(c.reader)
	}
	c.used = time.Now()
	c.count(&c.response, err, c.used.Sub(moment))
	if c.conn != nil && (err != nil || c.fresh || c.response.ConnectionClose()) {
		c.conn.Close()
		if c.conn = nil; !c.fresh {
			_ = c.connect() // else the next request tries again
		}
	}
}

// count counts an answer. One that is not 200 must be the refusal that is promised.
func (c *crowdClient) count(response *fasthttp.Response, err error, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.found.lost++
	case response.StatusCode() == fasthttp.StatusOK:
		c.found.served++
		_ = c.found.latency.RecordValue(int64(min(max(took, 1), loadLatencyMax)))
	case isRefusal(response):
		c.found.refused++
	default:
		c.found.strange++
		c.found.first = cmp.Or(c.found.first, fmt.Sprintf("%.600q", response.String()))
	}
}

// isRefusal tells whether an answer is 503 with an integer Retry-After and the error as JSON.
func isRefusal(response *fasthttp.Response) bool {
	var said struct {
		Error struct{ Code, Message, RequestID string }
	}
	seconds, err := strconv.Atoi(string(response.Header.Peek("Retry-After")))
	return response.StatusCode() == fasthttp.StatusServiceUnavailable && err == nil && seconds > 0 &&
		bytes.Contains(response.Header.ContentType(), []byte("application/json")) && json.Unmarshal(response.Body(), &said) == nil &&
		said.Error.Code == "overloaded" && said.Error.RequestID != ""
}

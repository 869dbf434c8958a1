package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// Quotas of the node under load: the highest that it takes. Those of the contract would end a run within a second.
	nodeQuotaDay    = "100000000"
	nodeQuotaMinute = "60000"
	// nodeLease is as much more than the 16 that go with 60 a minute: what is leased at once lasts as long as it does by default.
	nodeLease = "10000"
	// mallocsMetric counts the objects that a node has allocated.
	mallocsMetric = "go_memstats_mallocs_total"
)

// nodeContender is the node itself: tasard serve.
type nodeContender struct {
	program   program
	data      string   // its data directory
	catalogue string   // file, "" = none
	flags     []string // besides those that every run has
	process   *child
}

var _ contender = (*nodeContender)(nil)

// newNode is the program at a path on the data of a fixture, with more flags; a flag that stands twice has its last value.
func newNode(path string, f *fixture, flags ...string) *nodeContender {
	return &nodeContender{program: program{path: path}, data: f.dir, catalogue: f.catalogue, flags: flags}
}

func (n *nodeContender) name() string { return "node" }

func (n *nodeContender) missing() string { return "" }

// start returns when the node answers from its data.
func (n *nodeContender) start(ctx context.Context, core int) (*target, error) {
	first := question{path: "/v1/rates/best?currency=USD&operation=buy&limit=1"}
	found, _, err := n.startTimed(ctx, core, first.request(""))
	return found, err
}

// startTimed is start, and tells how long after the process was begun the request was answered 200 for the first time.
func (n *nodeContender) startTimed(ctx context.Context, core int, request []byte) (found *target, took time.Duration, err error) {
	if n.process != nil {
		return nil, 0, errors.New("start the node: it runs already")
	}
	args := []string{
		"serve", "--no-collect", "--data", n.data, "--listen", "127.0.0.1:0", "--log-format", "text",
		"--connections-per-address", "0", "--quota-day", nodeQuotaDay, "--quota-minute", nodeQuotaMinute, "--lease", nodeLease,
	}
	if n.catalogue != "" {
		args = append(args, "--catalogue", n.catalogue)
	}
	began := time.Now()
	n.process, err = spawn(&command{name: n.name(), program: n.program, args: append(args, n.flags...)}, core)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			n.kill()
		}
	}()
	address, err := n.process.listening(ctx)
	if err != nil {
		return nil, 0, err
	}
	if took, err = awaitAnswer(ctx, n.process, address, request, began); err != nil {
		return nil, 0, err
	}
	return &target{name: n.name(), address: address, processes: []int{n.process.pid()}, mallocs: n.mallocs}, took, nil
}

// stop ends it in order: what it counted is on disk.
func (n *nodeContender) stop() error { return stopOf(&n.process) }

// kill ends it as a crash does. It can be started again.
func (n *nodeContender) kill() { killOf(&n.process) }

// mallocs asks the node over the socket of its operator.
func (n *nodeContender) mallocs(ctx context.Context) (uint64, error) {
	text, err := n.ask(ctx, "/metrics", answerMax)
	if err != nil {
		return 0, fmt.Errorf("ask the node for its allocations: %w", err)
	}
	return metric(text, mallocsMetric)
}

// ask asks the node over the socket of its operator.
func (n *nodeContender) ask(ctx context.Context, target string, most time.Duration) (text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(n.data, "admin.sock"))
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://node"+target, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		return nil, err
	}
	return body.Bytes(), checkStatus(response, body.Bytes())
}

// metric is the value of a counter without labels in the text form of Prometheus.
func metric(text []byte, name string) (uint64, error) {
	for scanner := bufio.NewScanner(bytes.NewReader(text)); scanner.Scan(); {
		value, is := strings.CutPrefix(scanner.Text(), name+" ")
		if !is {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)        // 1.234567e+06
		if err != nil || !(number >= 0 && number < 1<<63) { // NaN too
			return 0, fmt.Errorf("read the metric %s: want a count, found %q", name, value)
		}
		return uint64(number), nil
	}
	return 0, fmt.Errorf("the node has no metric %s; is it of the same version as the bench?", name)
}

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// answerTimeout is how long one answer may take.
	answerTimeout = 60 * time.Second
	// Quotas of the node under load: the highest that it takes. Those of the contract would end a run within a second.
	nodeQuotaDay    = "100000000"
	nodeQuotaMinute = "60000"
	// nodeLease is as much more than the 16 that go with 60 a minute: what is leased at once lasts as long as it does by default.
	nodeLease = "10000"
	// listeningText is what comes before the address in the line that a server of ours writes once it listens.
	listeningText = "listening on http://"
)

// server is one that runs, as the load sees it.
type server struct {
	name, address string        // node, bare, nginx, postgres; host:port
	processes     []*process    // that work for it, the one in front first
	data          string        // the data directory of a node
	startDuration time.Duration // from the start of the process to the first answer
	scratchDir    string        // removed at the end
}

// missingError is what can't be measured here, and why: it is skipped by name.
type missingError struct{ name, why string }

func (e *missingError) Error() string { return e.name + ": " + e.why }

// startNode runs tasard serve on the data of a fixture, with more flags, and returns when it answers from them. program is its path,
// perhaps behind what runs it; a flag that stands twice has its last value.
func startNode(ctx context.Context, program []string, f *fixture, core int, flags ...string) (*server, error) {
	argv := append(program[:len(program):len(program)],
		"serve", "--no-collect", "--data", f.dir, "--listen", "127.0.0.1:0", "--log-format", "text",
		"--connections-per-address", "0", "--quota-day", nodeQuotaDay, "--quota-minute", nodeQuotaMinute, "--lease", nodeLease)
	if f.catalogue != "" {
		argv = append(argv, "--catalogue", f.catalogue)
	}
	s, err := startListening(ctx, &command{name: "node", argv: append(argv, flags...)}, core, "")
	if err == nil {
		s.data = f.dir
	}
	return s, err
}

// startBare runs a server that says what the node says to the one question of a mix, and does nothing else.
func startBare(ctx context.Context, self string, node *server, key, mix string, core int) (*server, error) {
	return startListening(ctx, &command{name: "bare", argv: []string{self, "bare", node.address, key, mix}}, core, key)
}

// startListening runs a server that tells where it listens, and waits for its first answer.
func startListening(ctx context.Context, c *command, core int, key string) (*server, error) {
	s := &server{name: c.name}
	return s, s.start(ctx, c, core, key)
}

// start begins the process in front and waits for its first answer. A server that has no address yet writes it. One that does not
// answer is killed.
func (s *server) start(ctx context.Context, c *command, core int, key string) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p, err := startProcess(c, core)
	if err == nil {
		s.processes = []*process{p}
		if s.address == "" {
			var line string
			line, err = p.awaitLine(ctx, listeningText)
			_, s.address, _ = strings.Cut(line, listeningText)
			s.address, _, _ = strings.Cut(strings.ReplaceAll(s.address, `"`, " "), " ")
		}
	}
	if err == nil {
		err = s.awaitAnswer(ctx, key)
	}
	if err != nil {
		s.kill()
	}
	s.startDuration = time.Since(began)
	return err
}

// awaitAnswer asks until the answer is 200.
func (s *server) awaitAnswer(ctx context.Context, key string) error {
	last, first := "", requestTemplate{path: "/v1/rates/best?currency=USD&operation=buy&limit=1"}
	err := s.processes[0].await(ctx, "an answer", func() bool {
		_, response, err := s.ask(ctx, first.request(key))
		if err == nil && response.StatusCode() == fasthttp.StatusOK {
			return true
		}
		last = fmt.Sprintf("%v %.300s", err, response.Body())
		return false
	})
	if err != nil {
		return fmt.Errorf("%w; its last answer: %s", err, last)
	}
	return nil
}

// issue sends a request on a connection of its own and reads the answer: as it came over the wire, and parsed.
func (s *server) ask(ctx context.Context, request []byte) ([]byte, *fasthttp.Response, error) {
	return exchange(ctx, "tcp", s.address, request)
}

func exchange(ctx context.Context, network, address string, request []byte) ([]byte, *fasthttp.Response, error) {
	var raw bytes.Buffer
	response := new(fasthttp.Response)
	conn, err := (&net.Dialer{Timeout: answerTimeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, response, err
	}
	defer func() { _ = conn.Close() }() // everything was read by then, or the error is told
	if err = conn.SetDeadline(time.Now().Add(answerTimeout)); err == nil {
		_, err = conn.Write(request)
	}
	if err == nil {
		err = response.Read(bufio.NewReader(io.TeeReader(conn, &raw)))
	}
	return raw.Bytes(), response, err
}

// capture asks a question once. An answer other than 200 is an error.
func (s *server) capture(ctx context.Context, key string, q *requestTemplate) ([]byte, *fasthttp.Response, error) {
	raw, response, err := s.ask(ctx, q.request(key))
	if err == nil && response.StatusCode() != fasthttp.StatusOK {
		err = fmt.Errorf("want an answer 200, found %d: %.300s", response.StatusCode(), response.Body())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("ask %s for %s: %w", s.name, q.path, err)
	}
	return raw, response, nil
}

// stop ends the server in order, those that work behind it last, and removes its scratch space.
func (s *server) stop() error {
	var all []error
	for _, p := range s.processes {
		all = append(all, p.stop())
	}
	if s.scratchDir != "" {
		all = append(all, os.RemoveAll(s.scratchDir))
	}
	return errors.Join(all...)
}

// kill ends it as a crash does, and removes its scratch space.
func (s *server) kill() {
	for _, p := range s.processes {
		p.kill()
	}
	if s.scratchDir != "" {
		_ = os.RemoveAll(s.scratchDir) // what stays is a directory among those for scratch
	}
}

// cpu is the CPU time of all its processes.
func (s *server) cpu() (total time.Duration, err error) {
	for _, p := range s.processes {
		spent, err := cpuTime(p.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		total += spent
	}
	return total, nil
}

// metric asks a node over the socket of its operator for a counter without labels.
func (s *server) metric(ctx context.Context, name string) (value float64, err error) {
	text, err := s.adminGet(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut("\n"+text, "\n"+name+" ")
	rest, _, _ = strings.Cut(rest, "\n")
	if value, err = strconv.ParseFloat(rest, 64); err != nil || !found {
		return 0, fmt.Errorf("the node has no metric %s (%q); is it of the same version as the bench?", name, rest)
	}
	return value, nil
}

// adminGet asks a node over the socket of its operator.
func (s *server) adminGet(ctx context.Context, path string) (body string, err error) {
	_, response, err := exchange(ctx, "unix", filepath.Join(s.data, "admin.sock"), (&requestTemplate{path: path}).request(""))
	if err == nil && response.StatusCode() != fasthttp.StatusOK {
		err = fmt.Errorf("want an answer 200, found %d: %.300s", response.StatusCode(), response.Body())
	}
	if err != nil {
		return "", fmt.Errorf("ask the node's operator socket for %s: %w", path, err)
	}
	return string(response.Body()), nil
}

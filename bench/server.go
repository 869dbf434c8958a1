//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	responseTimeout = 60 * time.Second
	// nodeQuotaDay and nodeQuotaMinute are the largest quotas that a node accepts. A load would use up the default
	// quotas within a second.
	nodeQuotaDay    = "100000000"
	nodeQuotaMinute = "60000"
	// nodeLease is the number of requests in a quota lease, the part of a daily quota that a node takes in its log at
	// once. nodeLease and nodeQuotaMinute are larger than their defaults (16 and 60) by similar factors, so leases are
	// renewed about as often as by default.
	nodeLease = "10000"
	// listeningText precedes the address in the output of the node and of the servers that `bench bare` and
	// `bench postgres` start.
	listeningText = "listening on http"
)

// server is a running server: a node, or a baseline, with which the node is compared.
type server struct {
	tls           *tls.Config // configuration for clients of the server; nil without TLS
	name, address string
	processes     []*process    // the first one accepts the connections
	data          string        // data directory of a node; "" for other servers
	startDuration time.Duration // time from the start of the process to the first response
	scratchDir    string        // removed when the server stops
}

// missingError reports a program that is not installed on this machine.
type missingError struct{ name, why string }

func (e *missingError) Error() string { return e.name + ": " + e.why }

// startNode runs tasard serve on the data of a fixture and waits until the node returns rates. program is the path of
// tasard, possibly after a command that runs it, such as strace. flags are further flags of tasard serve. A flag in
// flags overrides the same flag set here.
func startNode(ctx context.Context, program []string, f *fixture, core int, flags ...string) (*server, error) {
	argv := append(program[:len(program):len(program)],
		"serve", "--no-collect", "--data", f.dir, "--listen", "127.0.0.1:0", "--log-format", "text",
		"--connections-per-address", "0", "--quota-day", nodeQuotaDay, "--quota-minute", nodeQuotaMinute, "--lease", nodeLease)
	c := &command{name: "node"}
	if f.catalogue != "" {
		argv = append(argv, "--catalogue", f.catalogue)
	}
	if f.certificate != nil {
		argv, c.tls = append(argv, "--tls-cert", f.certificate.file, "--tls-key", f.certificate.key), f.certificate.client
	}
	c.argv = append(argv, flags...)
	s, err := startListening(ctx, c, core, "")
	if err == nil {
		s.data = f.dir
	}
	return s, err
}

// startBare runs the bare server, which sends one response of the node from memory to every request. mix is the name of
// a set of requests; it must have exactly one request. cert is nil for plain HTTP.
func startBare(ctx context.Context, self string, node *server, key, mix string, cert *certificate, core int) (*server, error) {
	c := &command{name: bareName, argv: []string{self, "bare", node.address, key, mix}}
	if cert != nil {
		c.argv, c.tls = append(c.argv, cert.file, cert.key), cert.client
	}
	return startListening(ctx, c, core, key)
}

// startListening starts a server that prints its address, and waits for its first response with status 200.
func startListening(ctx context.Context, cmd *command, core int, key string) (*server, error) {
	s := &server{name: cmd.name, tls: cmd.tls}
	return s, s.start(ctx, cmd, core, key)
}

// start starts the listening process of s and waits for its first response with status 200. If there is none, start
// kills the process.
func (s *server) start(ctx context.Context, cmd *command, core int, key string) error {
	startTime := time.Now()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p, err := startProcess(cmd, core)
	if err == nil {
		s.processes = []*process{p}
		if s.address == "" {
			var line string
			line, err = p.awaitLine(ctx, listeningText)
			if match := regexp.MustCompile(listeningText + `s?://([^" ]+)`).FindStringSubmatch(line); match != nil {
				s.address = match[1]
			}
		}
	}
	if err == nil {
		err = s.awaitResponse(ctx, key)
	}
	if err != nil {
		s.kill()
	}
	s.startDuration = time.Since(startTime)
	return err
}

// awaitResponse sends requests until a response has status 200.
func (s *server) awaitResponse(ctx context.Context, key string) error {
	lastResponse, template := "", requestTemplate{path: "/v1/rates/best?currency=USD&operation=buy&limit=1"}
	err := s.processes[0].await(ctx, "a response", func() bool {
		_, response, err := s.ask(ctx, template.request(key))
		if err == nil && response.StatusCode() == fasthttp.StatusOK {
			return true
		}
		lastResponse = fmt.Sprintf("%v %.300s", err, response.Body())
		return false
	})
	if err != nil {
		return fmt.Errorf("%w; its last response: %s", err, lastResponse)
	}
	return nil
}

// ask sends a request on a new connection and returns the response, both raw and parsed.
func (s *server) ask(ctx context.Context, request []byte) ([]byte, *fasthttp.Response, error) {
	return exchange(ctx, "tcp", s.address, s.tls, request)
}

func exchange(ctx context.Context, network, address string, tlsConfig *tls.Config, request []byte) ([]byte, *fasthttp.Response, error) {
	var raw bytes.Buffer
	response := new(fasthttp.Response)
	conn, err := (&net.Dialer{Timeout: responseTimeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, response, err
	}
	if tlsConfig != nil {
		conn = tls.Client(conn, tlsConfig)
	}
	defer func() { _ = conn.Close() }() // an error is irrelevant: the response has been read
	if err = conn.SetDeadline(time.Now().Add(responseTimeout)); err == nil {
		_, err = conn.Write(request)
	}
	if err == nil {
		err = response.Read(bufio.NewReader(io.TeeReader(conn, &raw)))
	}
	return raw.Bytes(), response, err
}

// capture sends a request with an API key on a new connection. It returns the response, both raw and parsed. A status
// other than 200 is an error.
func (s *server) capture(ctx context.Context, key string, q *requestTemplate) ([]byte, *fasthttp.Response, error) {
	raw, response, err := s.ask(ctx, q.request(key))
	if err == nil && response.StatusCode() != fasthttp.StatusOK {
		err = fmt.Errorf("want a response with status 200, found %d: %.300s", response.StatusCode(), response.Body())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("ask %s for %s: %w", s.name, q.path, err)
	}
	return raw, response, nil
}

// stop stops the processes, the listening one first, and removes the scratch directory.
func (s *server) stop() error {
	var errs []error
	for _, p := range s.processes {
		errs = append(errs, p.stop())
	}
	if s.scratchDir != "" {
		errs = append(errs, os.RemoveAll(s.scratchDir))
	}
	return errors.Join(errs...)
}

// kill kills the processes and removes the scratch directory.
func (s *server) kill() {
	for _, p := range s.processes {
		p.kill()
	}
	if s.scratchDir != "" {
		_ = os.RemoveAll(s.scratchDir)
	}
}

// cpu returns the CPU time of all processes of the server.
func (s *server) cpu() (total time.Duration, err error) {
	for _, p := range s.processes {
		t, err := cpuTime(p.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		total += t
	}
	return total, nil
}

// metric reads a metric from the management socket of a node: the sum of its values for all labels.
func (s *server) metric(ctx context.Context, name string) (sum float64, err error) {
	text, err := s.adminGet(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	lines := regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (\S+)$`).FindAllStringSubmatch(text, -1)
	for _, line := range lines {
		value, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			return 0, fmt.Errorf("read the metric %s: %w", name, err)
		}
		sum += value
	}
	if len(lines) == 0 {
		return 0, fmt.Errorf("the node has no metric %s; is it of the same version as the bench?", name)
	}
	return sum, nil
}

// adminGet sends a GET request to the management socket of a node and returns the body.
func (s *server) adminGet(ctx context.Context, path string) (body string, err error) {
	_, response, err := exchange(ctx, "unix", filepath.Join(s.data, "admin.sock"), nil, (&requestTemplate{path: path}).request(""))
	if err == nil && response.StatusCode() != fasthttp.StatusOK {
		err = fmt.Errorf("want a response with status 200, found %d: %.300s", response.StatusCode(), response.Body())
	}
	if err != nil {
		return "", fmt.Errorf("ask the node's management socket for %s: %w", path, err)
	}
	return string(response.Body()), nil
}

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	responseTimeout = 60 * time.Second
	// nodeQuotaDay and nodeQuotaMinute are the largest quotas that a node accepts. A load would use up the default
	// quotas within a second.
	nodeQuotaDay    = "100000000"
	nodeQuotaMinute = "60000"
	// listeningText precedes the address in the output of the node and of the bare server.
	listeningText = "listening on http"
)

// server is a running server: a node, or a baseline, with which the node is compared.
type server struct {
	certificate *certificate // nil without TLS
	address     string
	*process
}

// missingError reports a program that is not installed on this machine.
type missingError struct{ name, why string }

func (e *missingError) Error() string { return e.name + ": " + e.why }

// nodeFlags are the flags with which a node is measured. The first three raise limits that a load from one address
// would exceed. measuredFlags also trusts the proxy of goal F1p.
func nodeFlags() []string {
	return []string{"--connections-per-address", "0", "--quota-day", nodeQuotaDay, "--quota-minute", nodeQuotaMinute, "--no-collect", "--listen", "127.0.0.1:0", "--log-format", "text"}
}

func measuredFlags() []string { return append(nodeFlags(), "--trusted-proxy", "127.0.0.0/8") }

// startNode runs tasard serve on the data of a fixture and waits until the node returns rates. program is the path of
// tasard. flags are further flags of tasard serve. A flag in flags overrides the same flag in nodeFlags.
func startNode(ctx context.Context, program string, f *fixture, core int, flags ...string) (*server, error) {
	argv := append([]string{program, "serve", "--data", f.dir}, nodeFlags()...)
	if f.certificate != nil {
		argv = append(argv, "--tls-cert", f.certificate.file, "--tls-key", f.certificate.key)
	}
	s := &server{certificate: f.certificate}
	return s, s.start(ctx, "node", core, append(argv, flags...)...)
}

// startBare runs the bare server, which sends a response from memory to every request. It first writes the response to
// file. certificate is nil for plain HTTP.
func startBare(ctx context.Context, self, file string, response []byte, certificate *certificate) (*server, error) {
	if err := os.WriteFile(file, response, 0o600); err != nil {
		return nil, fmt.Errorf("write the response of the bare server: %w", err)
	}
	argv := []string{self, bareName, file}
	if certificate != nil {
		argv = append(argv, certificate.file, certificate.key)
	}
	s := &server{certificate: certificate}
	return s, s.start(ctx, bareName, serverCore, argv...)
}

// start starts the process of s and waits for its first response. If there is none, start kills the process.
func (s *server) start(ctx context.Context, name string, core int, argv ...string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if s.process, err = startProcess(name, core, argv...); err != nil {
		return err
	}
	if s.address == "" { // the process prints it
		var line string
		line, err = s.awaitLine(ctx, listeningText)
		_, line, _ = strings.Cut(line, "://")
		s.address, _, _ = strings.Cut(strings.TrimSpace(strings.ReplaceAll(line, `"`, " "))+" ", " ")
	}
	if err == nil {
		err = s.awaitResponse(ctx)
	}
	if err != nil {
		s.kill()
	}
	return err
}

// awaitResponse sends requests until a response has status 200 or 304. The bare server may have a 304 in memory.
func (s *server) awaitResponse(ctx context.Context) error {
	lastResponse, template := "", requestTemplate{path: bestPath}
	err := s.await(ctx, "a response", func() bool {
		_, response, err := s.ask(ctx, template.request(""))
		if err == nil && (response.StatusCode() == fasthttp.StatusOK || response.StatusCode() == fasthttp.StatusNotModified) {
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
	var raw bytes.Buffer
	response := new(fasthttp.Response)
	conn, err := (&net.Dialer{Timeout: responseTimeout}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, response, err
	}
	if s.certificate != nil {
		conn = tls.Client(conn, s.certificate.client)
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

// cpu returns the CPU time of the server.
func (s *server) cpu() (time.Duration, error) { return cpuTime(s.cmd.Process.Pid) }

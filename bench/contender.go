package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// startMax is how long a server may take until it answers.
	startMax = 60 * time.Second
	// answerMax is how long one answer may take.
	answerMax = 10 * time.Second
	// pollPause lies between two questions to a server that starts: often enough to tell milliseconds, and no load.
	pollPause = time.Millisecond
	// benchHost is the host that requests name.
	benchHost = "tasard.test"
)

// reply is what the node said to a question: the bare server and nginx say it again.
type reply struct {
	// Target is the request target that it belongs to, in front of the amount with Amounts.
	Target  string `json:"target"`
	Amounts bool   `json:"amounts,omitempty"`
	// Lines are the headers that it was asked with, beside Host and Authorization.
	Lines string `json:"lines,omitempty"`
	// Raw is the whole answer as it came over the wire.
	Raw []byte `json:"raw"`
}

// captureAmount is the amount that is asked for where a question wants one.
const captureAmount = "1234.56"

// request is a question as it goes over the wire. key may be "".
func (q *question) request(key string) []byte {
	target := q.path
	if q.amounts {
		target += captureAmount
	}
	text := "GET " + target + " HTTP/1.1\r\nHost: " + benchHost + "\r\n"
	if key != "" {
		text += "Authorization: Bearer " + key + "\r\n"
	}
	return []byte(text + q.lines + "\r\n")
}

// capture asks a server each question once. An answer other than 200 is an error.
func capture(ctx context.Context, address, key string, questions []question) ([]reply, error) {
	var replies []reply
	for i := range questions {
		q := &questions[i]
		raw, response, err := exchange(ctx, address, q.request(key))
		if err != nil {
			return nil, fmt.Errorf("ask for %s: %w", q.operation, err)
		}
		if status := response.StatusCode(); status != fasthttp.StatusOK {
			return nil, fmt.Errorf("ask for %s: want an answer 200, found %d: %.300s", q.operation, status, response.Body())
		}
		replies = append(replies, reply{q.path, q.amounts, q.lines, raw})
	}
	return replies, nil
}

// exchange sends a request on a connection of its own and reads the answer.
func exchange(ctx context.Context, address string, request []byte) ([]byte, *fasthttp.Response, error) {
	conn, err := (&net.Dialer{Timeout: answerMax}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = conn.Close() }() // everything was read by then, or the error is told
	if err := conn.SetDeadline(time.Now().Add(answerMax)); err != nil {
		return nil, nil, err
	}
	if _, err := conn.Write(request); err != nil {
		return nil, nil, err
	}
	var raw strings.Builder
	response := new(fasthttp.Response)
	if err := response.Read(bufio.NewReader(io.TeeReader(conn, &raw))); err != nil {
		return nil, nil, err
	}
	return []byte(raw.String()), response, nil
}

// request asks for it again, without a key.
func (r *reply) request() []byte {
	q := question{path: r.Target, amounts: r.Amounts, lines: r.Lines}
	return q.request("")
}

// response parses the answer.
func (r *reply) response() (*fasthttp.Response, error) {
	response := new(fasthttp.Response)
	if err := response.Read(bufio.NewReader(strings.NewReader(string(r.Raw)))); err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", r.Target, err)
	}
	return response, nil
}

// writeReplies keeps replies in a file.
func writeReplies(path string, replies []reply) error {
	data, err := json.Marshal(replies)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the replies: %w", err)
	}
	return nil
}

func readReplies(path string) ([]reply, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the replies: %w", err)
	}
	var replies []reply
	if err := json.Unmarshal(data, &replies); err != nil {
		return nil, fmt.Errorf("read the replies in %s: %w", path, err)
	}
	return replies, nil
}

// awaitAnswer asks until the answer is 200, and tells how long after an instant it came.
func awaitAnswer(ctx context.Context, p *child, address string, request []byte, since time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	pause := time.NewTicker(pollPause)
	defer pause.Stop()
	for last := ""; ; {
		_, response, err := exchange(ctx, address, request)
		switch {
		case err != nil:
			last = err.Error()
		case response.StatusCode() == fasthttp.StatusOK:
			return time.Since(since), nil
		default:
			last = fmt.Sprintf("%d %.200s", response.StatusCode(), response.Body())
		}
		select {
		case <-pause.C:
		case <-p.done:
			return 0, p.death(errDied)
		case <-ctx.Done():
			return 0, fmt.Errorf("%s does not answer: %w; its last answer: %s; its last lines:\n%s", p.name, ctx.Err(), last, p.output)
		}
	}
}

// listeningText is what comes before the address in the line that a server of ours writes once it listens.
const listeningText = "listening on http://"

// listening waits for the address.
func (p *child) listening(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	line, err := p.line(ctx, listeningText)
	if err != nil {
		return "", err
	}
	_, address, _ := strings.Cut(line, listeningText)
	if end := strings.IndexAny(address, "\" "); end >= 0 {
		address = address[:end]
	}
	return address, nil
}

// startedServer waits until a server of ours that a contender holds answers. One that does not is killed.
func startedServer(ctx context.Context, name string, held **child, request []byte) (*target, error) {
	address, err := (*held).listening(ctx)
	if err == nil {
		_, err = awaitAnswer(ctx, *held, address, request, time.Now())
	}
	if err != nil {
		killOf(held)
		return nil, err
	}
	return &target{name: name, address: address, processes: []int{(*held).pid()}}, nil
}

// stopOf stops a process that a contender holds, if there is one.
func stopOf(held **child) error {
	if *held == nil {
		return nil
	}
	err := (*held).stop()
	*held = nil
	return err
}

// killOf kills it.
func killOf(held **child) {
	if *held != nil {
		(*held).kill()
		*held = nil
	}
}

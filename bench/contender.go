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

// answer is what the node said to a question: the bare server and nginx say it again.
type answer struct {
	// Target is the request target that it belongs to, in front of the amount with Amounts.
	Target  string `json:"target"`
	Amounts bool   `json:"amounts,omitempty"`
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
func capture(ctx context.Context, address, key string, questions []question) ([]answer, error) {
	var answers []answer
	for i := range questions {
		q := &questions[i]
		raw, response, err := exchange(ctx, address, q.request(key))
		if err != nil {
			return nil, fmt.Errorf("ask for %s: %w", q.operation, err)
		}
		if status := response.StatusCode(); status != fasthttp.StatusOK {
			return nil, fmt.Errorf("ask for %s: want an answer 200, found %d: %.300s", q.operation, status, response.Body())
		}
		answers = append(answers, answer{q.path, q.amounts, raw})
	}
	return answers, nil
}

// exchange sends a request on a connection of its own and reads the answer.
func exchange(ctx context.Context, address string, request []byte) ([]byte, *fasthttp.Response, error) {
	conn, err := (&net.Dialer{Timeout: answerMax}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
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

// response parses the answer.
func (a *answer) response() (*fasthttp.Response, error) {
	response := new(fasthttp.Response)
	if err := response.Read(bufio.NewReader(strings.NewReader(string(a.Raw)))); err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", a.Target, err)
	}
	return response, nil
}

// writeAnswers keeps answers in a file.
func writeAnswers(path string, answers []answer) error {
	data, err := json.Marshal(answers)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the answers: %w", err)
	}
	return nil
}

func readAnswers(path string) ([]answer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the answers: %w", err)
	}
	var answers []answer
	if err := json.Unmarshal(data, &answers); err != nil {
		return nil, fmt.Errorf("read the answers in %s: %w", path, err)
	}
	return answers, nil
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

package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"pgregory.net/rapid"
)

const (
	fullPageTarget  = "/v1/rates/best?currency=USD&operation=buy"
	shortPageTarget = fullPageTarget + "&limit=1"
)

// pipelinedRequests are requests of every kind of answer and length, and the method that they are read back with.
func pipelinedRequests() [][2]string {
	const tail = " HTTP/1.1\r\nHost: a\r\n"
	return [][2]string{
		{"GET", request(fullPageTarget)},
		{"GET", request(shortPageTarget)},
		{"GET", request("/v1/rates?limit=100")},
		{"GET", request("/v1/convert?currency=USD&operation=buy&amount=12.5")},
		{"GET", "GET " + fullPageTarget + tail + "Accept-Encoding: gzip\r\n\r\n"},
		{"GET", "GET " + fullPageTarget + tail + "If-None-Match: *\r\n\r\n"},
		{"HEAD", "HEAD " + fullPageTarget + tail + "\r\n"},
		{"OPTIONS", "OPTIONS " + fullPageTarget + tail + "\r\n"},
		{"GET", request("/nothing")},
		{"GET", request(shortPageTarget + "&limit=2")},
		{"GET", "\r\n" + request(shortPageTarget)},
		{"GET", "\r\n\r\n" + request(shortPageTarget)},
	}
}

// comparableAnswer is an answer without what differs each time.
func comparableAnswer(answer *http.Response) (string, error) {
	body, err := io.ReadAll(answer.Body)
	for _, name := range []string{"Date", headerRequestID} {
		answer.Header.Del(name)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		body = []byte(fmt.Sprint(len(body))) // it holds the id
	}
	return fmt.Sprint(answer.StatusCode, answer.ContentLength, answer.Header, string(body)), err
}

// askAll sends requests behind each other, cut into pieces, and reads an answer for each method. fatal ends the test.
func askAll(fatal func(...any), address, text string, cuts []int, methods []string) (answers []string) {
	conn := must(net.Dial("tcp", address))
	defer conn.Close()
	_ = conn.SetDeadline(networkDeadline())
	go func() {
		for _, cut := range append(cuts, len(text)) {
			cut = min(cut, len(text))
			_, _ = io.WriteString(conn, text[:cut])
			text = text[cut:]
		}
	}()
	reader := bufio.NewReader(conn)
	for i, method := range methods {
		response, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			fatal(fmt.Sprintf("answer %d of %d: %.200s", i+1, len(methods), err))
		}
		answer, err := comparableAnswer(response)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			fatal(err)
		}
		answers = append(answers, answer)
	}
	return answers
}

// TestP5_AnswersStayInOrder: pipelined requests get their answers in order, the same as on connections of their own.
func TestP5_AnswersStayInOrder(t *testing.T) {
	t.Parallel()
	address := serveServer(t, newStaticServer(t)).address
	requests := pipelinedRequests()
	single := make([]string, len(requests))
	for i, one := range requests {
		single[i] = askAll(t.Fatal, address, one[1], nil, []string{one[0]})[0]
	}
	rapid.Check(t, func(t *rapid.T) {
		var text bytes.Buffer
		var methods, want []string
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(requests)-1), 1, 12).Draw(t, "requests") {
			text.WriteString(requests[i][1])
			methods, want = append(methods, requests[i][0]), append(want, single[i])
		}
		cuts := rapid.SliceOfN(rapid.IntRange(1, 400), 0, 8).Draw(t, "pieces")
		for i, got := range askAll(t.Fatal, address, text.String(), cuts, methods) {
			if got != want[i] {
				t.Fatalf("answer %d of %d:\ngot  %.300s\nwant %.300s", i+1, len(want), got, want[i])
			}
		}
	})
}

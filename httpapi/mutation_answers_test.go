package httpapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// framingProblem reads what a server wrote more strictly than any client: answers and nothing else, each of the
// length that it announces, none behind one that ends the connection, none of the server's own faults. methods are
// those of the requests that were answered, as far as they are known. It returns "" or what is wrong.
func framingProblem(out []byte, methods []string) string {
	answers, closes := 0, false
	for wire := bufio.NewReader(bytes.NewReader(out)); ; {
		if _, err := wire.Peek(1); err != nil {
			break
		}
		if closes {
			return fmt.Sprintf("more behind answer %d, which ends the connection", answers)
		}
		method := ""
		if answers < len(methods) {
			method = methods[answers]
		}
		head, _ := wire.Peek(len("HTTP/1.1 100 Continue\r\n\r\n"))
		if string(head) == "HTTP/1.1 100 Continue\r\n\r\n" {
			_, _ = wire.Discard(len(head))
			continue
		}
		problem := ""
		if closes, problem = oneAnswer(wire, method); problem != "" {
			return fmt.Sprintf("answer %d: %s", answers+1, problem)
		}
		answers++
	}
	if len(methods) > 0 && (answers < len(methods) || answers > len(methods)+1) {
		return fmt.Sprintf("%d answers to %d requests", answers, len(methods))
	}
	return ""
}

// oneAnswer judges one answer. An unknown method is one that the server could not read.
func oneAnswer(wire *bufio.Reader, method string) (closes bool, problem string) {
	response, err := http.ReadResponse(wire, &http.Request{Method: method})
	if err != nil {
		return false, err.Error()
	}
	defer response.Body.Close()
	switch {
	case response.Proto != "HTTP/1.1" || response.StatusCode >= 500 && response.StatusCode != http.StatusNotImplemented || response.StatusCode < 200:
		return false, response.Status
	case len(response.TransferEncoding) > 0 || len(response.Header.Values("Content-Length")) > 1:
		return false, "it is chunked, or has two lengths"
	case len(response.Header.Values(headerRequestID)) != 1:
		return false, fmt.Sprintf("%d request ids", len(response.Header.Values(headerRequestID)))
	case response.StatusCode == 204 || response.StatusCode == 304 || method == "HEAD":
		return response.Close, ""
	}
	body, err := io.ReadAll(response.Body)
	switch {
	case method == "" && response.Close && len(body) == 0:
		return true, "" // to a HEAD that could not be read
	case err != nil || response.ContentLength < 0:
		return false, fmt.Sprintf("%d: length %d, %d bytes are there: %v", response.StatusCode, response.ContentLength, len(body), err)
	}
	return response.Close, bodyProblem(response.StatusCode, body, response.Header.Get("Content-Encoding") == "gzip")
}

// bodyProblem: each body is one JSON value, that of a refusal the error object.
func bodyProblem(status int, body []byte, packed bool) string {
	if packed {
		unpacker, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return err.Error()
		}
		if body, err = io.ReadAll(unpacker); err != nil {
			return err.Error()
		}
	}
	if !json.Valid(body) || status >= 400 && !bytes.HasPrefix(body, []byte(`{"error":{"code":"`)) {
		return fmt.Sprintf("%d with the body %.100q", status, body)
	}
	return ""
}

//go:build faults

package httpapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// framingProblem reads what a server wrote, byte by byte, more strictly than any client: answers and nothing else, each of the length that
// it announces, none behind one that ends the connection, none of the server's own faults. methods are those of the requests that were
// answered, as far as they are known. It returns "" or what is wrong.
func framingProblem(out []byte, methods []string) string {
	answers := 0
	for len(out) > 0 {
		head, rest, whole := bytes.Cut(out, []byte("\r\n\r\n"))
		if !whole {
			return fmt.Sprintf("a head that does not end: %.60q", out)
		}
		if string(head) == "HTTP/1.1 100 Continue" {
			out = rest
			continue
		}
		method := ""
		if answers < len(methods) {
			method = methods[answers]
		}
		used, closes, problem := oneAnswer(head, rest, method)
		if problem != "" {
			return fmt.Sprintf("answer %d: %s", answers+1, problem)
		}
		answers++
		if out = rest[used:]; closes && len(out) > 0 {
			return fmt.Sprintf("behind answer %d, which ends the connection: %.60q", answers, out)
		}
	}
	if len(methods) > 0 && (answers < len(methods) || answers > len(methods)+1) {
		return fmt.Sprintf("%d answers to %d requests", answers, len(methods))
	}
	return ""
}

// oneAnswer judges one answer. An unknown method is one that the server could not read.
func oneAnswer(head, rest []byte, method string) (used int, closes bool, problem string) {
	lines := strings.Split(string(head), "\r\n")
	status := 0
	if n, err := fmt.Sscanf(lines[0], "HTTP/1.1 %3d ", &status); n != 1 || err != nil {
		return 0, false, fmt.Sprintf("status line %q", lines[0])
	}
	if status >= 500 || status < 200 {
		return 0, false, fmt.Sprintf("%q: %.300q", lines[0], rest)
	}
	length, packed, ids := -1, false, 0
	for _, line := range lines[1:] {
		name, value, found := strings.Cut(line, ": ")
		if !found || strings.ContainsAny(line, "\r\n\x00") {
			return 0, false, fmt.Sprintf("header line %q", line)
		}
		switch name {
		case "Content-Length":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 || length >= 0 {
				return 0, false, fmt.Sprintf("length %q", value)
			}
			length = n
		case "Transfer-Encoding":
			return 0, false, "it is chunked"
		case "Connection":
			closes = value == "close"
		case "Content-Encoding":
			packed = true
		case headerRequestID:
			ids++
		}
	}
	if ids != 1 {
		return 0, false, fmt.Sprintf("%d request ids", ids)
	}
	switch {
	case status == 204 || status == 304 || method == "HEAD":
		return 0, closes, ""
	case method == "" && closes && len(rest) == 0:
		return 0, closes, "" // to a HEAD that could not be read
	case length < 0 || length > len(rest):
		return 0, false, fmt.Sprintf("%d: length %d, %d bytes are there", status, length, len(rest))
	}
	return length, closes, bodyProblem(status, rest[:length], packed)
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

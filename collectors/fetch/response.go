package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// Limits of a response, decompressed.
const (
	pageBytesMax     = 5 << 20   // HTML, JSON, text
	workbookBytesMax = 10 << 20  // XLSX, XLS
	robotsBytesMax   = 512 << 10 // RFC 9309, section 2.5 demands at least 500 KiB; the rest is ignored
	errorBytesMax    = 64 << 10  // of an error page: enough to recognise a bot wall
	headerBytesMax   = 64 << 10
)

// bodyBytesInitial is the first capacity of the buffer for a body of unknown size.
const bodyBytesInitial = 64 << 10

// rawResponse is the response to one request, with its whole body.
type rawResponse struct {
	method     string
	url        *url.URL
	status     int
	header     http.Header
	body       []byte
	receivedAt time.Time // of the last byte
}

var errTooLarge = errors.New("too large")

// readBody reads at most limit bytes. A longer body is errTooLarge, or its first limit bytes if truncate is set.
// contentLength is -1 if it is unknown. The buffer grows in few steps, never beyond the limit.
func readBody(body io.Reader, contentLength int64, limit int, truncate bool) ([]byte, error) {
	if contentLength > int64(limit) && !truncate {
		return nil, errTooLarge
	}
	capacity := min(bodyBytesInitial, limit)
	if contentLength >= 0 && contentLength <= int64(limit) {
		capacity = int(contentLength)
	}
	buffer := make([]byte, 0, capacity+1) // one byte more, to notice a longer body
	for {
		n, err := body.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if len(buffer) > limit {
			if truncate {
				return buffer[:limit], nil
			}
			return nil, errTooLarge
		}
		if errors.Is(err, io.EOF) {
			if len(buffer) < cap(buffer)/4 {
				buffer = bytes.Clone(buffer) // the caller may keep the body for long
			}
			return buffer, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buffer) == cap(buffer) {
			buffer = append(make([]byte, 0, nextCapacity(cap(buffer), limit)), buffer...)
		}
	}
}

// nextCapacity returns four times the capacity. From limit/16 on it returns the largest capacity, so that the last copy
// is small.
func nextCapacity(capacity, limit int) int {
	if capacity >= limit/16 {
		return limit + 1
	}
	return 4 * capacity
}

func (r *rawResponse) isRedirect() bool {
	switch r.status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// check returns the error of a response that is not a redirect, or nil. Only the document (isDocument) needs a body.
func (r *rawResponse) check(isDocument bool) *fetchError {
	switch {
	case r.status == http.StatusOK || r.status == http.StatusNoContent || r.status == http.StatusResetContent:
		if !isDocument || r.status == http.StatusOK && len(r.body) > 0 {
			return nil
		}
		return r.errorf(source.Empty, "a response without a body")
	case r.status == http.StatusForbidden:
		return r.errorf(source.Blocked, "the server refuses us")
	case r.status == http.StatusUnauthorized && len(r.body) > 0:
		return r.errorf(source.Blocked, "the server asks for a login")
	case r.status >= 400 && r.isBotWall():
		return r.errorf(source.Blocked, "the challenge page of a bot wall")
	}
	fetchErr := r.errorf(source.HTTPStatus, "want 200")
	if isRetryableStatus(r.status) {
		fetchErr.retryable, fetchErr.retryAfter = true, readRetryAfter(r.header.Get("Retry-After"), r.receivedAt)
	}
	return fetchErr
}

// isBotWall reports whether a response is the challenge page of a bot wall.
func (r *rawResponse) isBotWall() bool {
	page := source.Document{ContentType: r.header.Get("Content-Type"), Body: r.body}
	return r.header.Get("Cf-Mitigated") != "" || page.Challenge() != ""
}

// errorf returns an error that names the request and the status.
func (r *rawResponse) errorf(kind source.FailureKind, format string, args ...any) *fetchError {
	status := http.StatusText(r.status)
	if status == "" {
		status = "unknown"
	}
	fetchErr := newFetchError(kind, "%s %s: %s, found %d %s",
		r.method, shorten(r.url.String()), fmt.Sprintf(format, args...), r.status, status)
	fetchErr.status = r.status
	return fetchErr
}

// redirectTarget returns the address to which a response redirects.
func (r *rawResponse) redirectTarget() (*url.URL, *fetchError) {
	location := r.header.Get("Location")
	if location == "" {
		return nil, r.errorf(source.HTTPStatus, "a redirect names no target")
	}
	target, err := r.url.Parse(location)
	if err != nil {
		return nil, r.errorf(source.HTTPStatus, "a redirect to %s, which is not an address", shorten(location)).withCause(err)
	}
	if reason := refuseAddress(r.url, target); reason != "" {
		return nil, r.errorf(source.HTTPStatus, "a redirect to %s is not followed: %s", shorten(location), reason)
	}
	target.Fragment, target.RawFragment = "", ""
	return target, nil
}

// shorten sanitizes a text from a server for an error.
func shorten(text string) string { return sanitize(text, 200) }

// sanitize removes control characters and limits the size.
func sanitize(text string, bytesMax int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	if len(text) > bytesMax {
		text = strings.ToValidUTF8(text[:bytesMax], "") + "…"
	}
	return text
}

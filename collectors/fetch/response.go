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

// bodyBytesInitial is the first capacity for a body of unknown size; it grows fourfold.
const bodyBytesInitial = 64 << 10

// rawResponse is the response to one request, read completely.
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
// declared is the Content-Length, -1 = unknown. Memory grows in few steps and never beyond the limit.
func readBody(body io.Reader, declared int64, limit int, truncate bool) ([]byte, error) {
	if declared > int64(limit) && !truncate {
		return nil, errTooLarge
	}
	capacity := min(bodyBytesInitial, limit)
	if declared >= 0 && declared <= int64(limit) {
		capacity = int(declared)
	}
	buffer := make([]byte, 0, capacity+1) // one more byte shows whether there is more
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
				buffer = bytes.Clone(buffer) // the caller may keep it for long
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

// nextCapacity grows fourfold, and early to the limit, so that the last copy is small.
func nextCapacity(capacity, limit int) int {
	if capacity >= limit/16 {
		return limit + 1
	}
	return 4 * capacity
}

func (a *rawResponse) isRedirect() bool {
	switch a.status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// check returns what is wrong with a response that is not a redirect. Only the document (isDocument) needs a body,
// steps towards it do not.
func (a *rawResponse) check(isDocument bool) *fetchError {
	switch {
	case a.status == http.StatusOK || a.status == http.StatusNoContent || a.status == http.StatusResetContent:
		if !isDocument || a.status == http.StatusOK && len(a.body) > 0 {
			return nil
		}
		return a.errorf(source.Empty, "a response without a body")
	case a.status == http.StatusForbidden:
		return a.errorf(source.Blocked, "the server refuses us")
	case a.status == http.StatusUnauthorized && len(a.body) > 0:
		return a.errorf(source.Blocked, "the server asks for a login")
	case a.status >= 400 && a.isBotWall():
		return a.errorf(source.Blocked, "the challenge page of a bot wall")
	}
	failed := a.errorf(source.HTTPStatus, "want 200")
	if isRetryableStatus(a.status) {
		failed.retryable, failed.retryAfter = true, readRetryAfter(a.header.Get("Retry-After"), a.receivedAt)
	}
	return failed
}

// isBotWall reports whether an error page comes from a bot wall, not from the site behind it.
func (a *rawResponse) isBotWall() bool {
	page := source.Document{ContentType: a.header.Get("Content-Type"), Body: a.body}
	return a.header.Get("Cf-Mitigated") != "" || page.Challenge() != ""
}

// errorf returns an error that names the request and the status.
func (a *rawResponse) errorf(kind source.FailureKind, format string, args ...any) *fetchError {
	status := http.StatusText(a.status)
	if status == "" {
		status = "unknown"
	}
	failed := newFetchError(kind, "%s %s: %s, found %d %s",
		a.method, shorten(a.url.String()), fmt.Sprintf(format, args...), a.status, status)
	failed.status = a.status
	return failed
}

// redirectTarget returns the address that a redirect leads to.
func (a *rawResponse) redirectTarget() (*url.URL, *fetchError) {
	location := a.header.Get("Location")
	if location == "" {
		return nil, a.errorf(source.HTTPStatus, "a redirect names no target")
	}
	to, err := a.url.Parse(location)
	if err != nil {
		return nil, a.errorf(source.HTTPStatus, "a redirect to %s, which is not an address", shorten(location)).withCause(err)
	}
	if why := refuseAddress(a.url, to); why != "" {
		return nil, a.errorf(source.HTTPStatus, "a redirect to %s is not followed: %s", shorten(location), why)
	}
	to.Fragment, to.RawFragment = "", ""
	return to, nil
}

// shorten limits a text from a server to a part of a line.
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

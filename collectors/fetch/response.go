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

// Limits of an answer, unpacked.
const (
	pageBytesMax     = 5 << 20   // HTML, JSON, text
	workbookBytesMax = 10 << 20  // XLSX, XLS
	robotsBytesMax   = 512 << 10 // RFC 9309, 2.5 wants at least 500 KiB; the rest is left out
	errorBytesMax    = 64 << 10  // of an answer that is no document: enough to recognise a bot wall
	headerBytesMax   = 64 << 10
)

// bodyBytesInitial is how much room a body of unknown size gets at first; four times as much whenever it is full.
const bodyBytesInitial = 64 << 10

// rawResponse is what one request brought.
type rawResponse struct {
	method     string
	url        *url.URL
	status     int
	header     http.Header
	body       []byte
	receivedAt time.Time // when its last byte came
}

// errTooLarge is a body beyond its limit.
var errTooLarge = errors.New("too large")

// readBody reads at most limit bytes: errTooLarge for more, or, with cut, the first limit bytes. declared is the size that the header
// says, -1 = unknown. The room grows in few steps and never beyond the limit, so that a hostile body costs its limit and no more.
func readBody(body io.Reader, declared int64, limit int, cut bool) ([]byte, error) {
	if declared > int64(limit) && !cut {
		return nil, errTooLarge
	}
	room := min(bodyBytesInitial, limit)
	if declared >= 0 && declared <= int64(limit) {
		room = int(declared)
	}
	buffer := make([]byte, 0, room+1) // one more byte shows that there is more
	for {
		n, err := body.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if len(buffer) > limit {
			if cut {
				return buffer[:limit], nil
			}
			return nil, errTooLarge
		}
		if errors.Is(err, io.EOF) {
			if len(buffer) < cap(buffer)/4 {
				buffer = bytes.Clone(buffer) // its reader may keep it for long
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

// nextCapacity is the room after one that is full: four times as much, and soon the limit, so that the last copy is a small one.
func nextCapacity(room, limit int) int {
	if room >= limit/16 {
		return limit + 1
	}
	return 4 * room
}

// isRedirect reports that the answer names another place, by a status that has one.
func (a *rawResponse) isRedirect() bool {
	switch a.status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// check says what is wrong with an answer that is no redirect, nil = it is a document. last tells the document from a step towards it,
// which may be without a body.
func (a *rawResponse) check(last bool) *fetchError {
	switch {
	case a.status == http.StatusOK && (len(a.body) > 0 || !last):
		return nil
	case a.status == http.StatusOK, a.status == http.StatusNoContent, a.status == http.StatusResetContent:
		if !last {
			return nil
		}
		return a.errorf(source.Empty, "an answer without a body")
	case a.status == http.StatusForbidden:
		return a.errorf(source.Blocked, "the server refuses us")
	case a.status == http.StatusUnauthorized && len(a.body) > 0:
		return a.errorf(source.Blocked, "the server wants us to log in")
	case a.status >= 400 && a.isBotWall():
		return a.errorf(source.Blocked, "a challenge of a bot wall")
	case isRetryableStatus(a.status):
		f := a.errorf(source.HTTPStatus, "wanted 200").asRetryable()
		f.retryAfter = readRetryAfter(a.header.Get("Retry-After"), a.receivedAt)
		return f
	default:
		return a.errorf(source.HTTPStatus, "wanted 200")
	}
}

// isBotWall reports that an error comes from a bot wall and not from the site behind it. Parse recognises walls that answer 200.
func (a *rawResponse) isBotWall() bool {
	page := source.Document{ContentType: a.header.Get("Content-Type"), Body: a.body}
	return a.header.Get("Cf-Mitigated") != "" || page.Challenge() != ""
}

// fetchError is a fault that tells the status and what it means.
func (a *rawResponse) errorf(kind source.FailureKind, what string) *fetchError {
	f := newFetchError(kind, "%s %s: %s, found %s", a.method, shorten(a.url.String()), what, statusText(a.status))
	f.status = a.status
	return f
}

// redirectTarget is where a redirect leads.
func (a *rawResponse) redirectTarget() (*url.URL, *fetchError) {
	location := a.header.Get("Location")
	if location == "" {
		return nil, a.errorf(source.HTTPStatus, "a redirect that names no target")
	}
	to, err := a.url.Parse(location)
	if err != nil {
		return nil, a.errorf(source.HTTPStatus, "a redirect to "+shorten(location)+", which is no address").withCause(err)
	}
	if why := refuseAddress(a.url, to); why != "" {
		return nil, a.errorf(source.HTTPStatus, "a redirect to "+shorten(location)+" is not followed: "+why)
	}
	to.Fragment, to.RawFragment = "", ""
	return to, nil
}

// shorten cuts what a server says to what fits a line.
func shorten(text string) string { return sanitize(text, 200) }

// sanitize takes out what could steer a terminal, and what is beyond a size.
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

func statusText(status int) string {
	text := http.StatusText(status)
	if text == "" {
		text = "unknown"
	}
	return fmt.Sprintf("%d %s", status, text)
}

package fetch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// Limits of a response body after decompression, and of the header.
const (
	pageBytesMax     = 5 << 20   // HTML, JSON, text
	workbookBytesMax = 10 << 20  // XLSX, XLS
	robotsBytesMax   = 512 << 10 // a longer robots.txt is cut off; RFC 9309, section 2.5, demands at least 500 KiB
	errorBytesMax    = 64 << 10  // error pages are cut off; a bot-protection page is recognised by its beginning
	headerBytesMax   = 64 << 10
)

// smallBodyBytes is the size from which on a body gets a buffer for the largest one.
const smallBodyBytes = 64 << 10

// rawResponse is the response to one request, with its body.
type rawResponse struct {
	method     string
	url        *url.URL
	status     int
	header     http.Header
	body       []byte
	receivedAt time.Time // time of the last byte
}

var errTooLarge = errors.New("too large")

// readBody reads a body of at most limit bytes. A longer body is errTooLarge, or with truncate is cut off at limit.
// contentLength is -1 if unknown.
func readBody(body io.Reader, contentLength int64, limit int, truncate bool) ([]byte, error) {
	if contentLength > int64(limit) && !truncate {
		return nil, errTooLarge
	}
	limited := io.LimitReader(body, int64(limit)+1) // one byte more, to detect a body that is too long
	buffer := &bytes.Buffer{}
	_, err := io.CopyN(buffer, limited, smallBodyBytes)
	if err == nil { // room for the whole at once: a buffer that doubles needs memory for its last two sizes
		buffer = bytes.NewBuffer(append(make([]byte, 0, limit+2*bytes.MinRead), buffer.Bytes()...))
		_, err = buffer.ReadFrom(limited)
	}
	switch read := buffer.Bytes(); {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case len(read) > limit && !truncate:
		return nil, errTooLarge
	case len(read) < limit/4:
		return bytes.Clone(read), nil // a page is kept longer than its buffer
	default:
		return read[:min(len(read), limit)], nil
	}
}

func (r *rawResponse) isRedirect() bool {
	return slices.Contains([]int{301, 302, 303, 307, 308}, r.status)
}

// check returns nil for a good response, else an error with the reason. isDocument means that a response without a body
// is an error. Do not call check for a redirect.
func (r *rawResponse) check(isDocument bool) *fetchError {
	switch {
	case r.status == http.StatusOK || r.status == http.StatusNoContent || r.status == http.StatusResetContent:
		if !isDocument || r.status == http.StatusOK && len(r.body) > 0 {
			return nil
		}
		return r.errorf(source.Empty, "a response without a body")
	case r.status == http.StatusForbidden:
		return r.errorf(source.Blocked, "the server forbids the request")
	case r.status == http.StatusUnauthorized && len(r.body) > 0:
		return r.errorf(source.Blocked, "the server asks for a login")
	case r.status >= 400 && r.isChallenge():
		return r.errorf(source.Blocked, "the challenge page of a bot protection")
	}
	fetchErr := r.errorf(source.HTTPStatus, "want 200")
	if slices.Contains([]int{429, 500, 502, 503, 504}, r.status) { // the same request may succeed a few seconds later
		fetchErr.retryable, fetchErr.retryAfter = true, readRetryAfter(r.header.Get("Retry-After"), r.receivedAt)
	}
	return fetchErr
}

func (r *rawResponse) isChallenge() bool {
	page := source.Document{ContentType: r.header.Get("Content-Type"), Body: r.body}
	return r.header.Get("Cf-Mitigated") != "" || page.Challenge() != ""
}

// errorf returns an error that names the request, the formatted text and the status.
func (r *rawResponse) errorf(kind source.FailureKind, format string, args ...any) *fetchError {
	status := http.StatusText(r.status)
	if status == "" {
		status = "unknown"
	}
	fetchErr := newFetchError(kind, "%s %s: %s, found %d %s",
		r.method, shorten(r.url.String()), fmt.Sprintf(format, args...), r.status, status)
	fetchErr.status, fetchErr.failure.Status = r.status, r.status
	return fetchErr
}

// redirectTarget returns the target of a redirect, or an error if the redirect is forbidden.
func (r *rawResponse) redirectTarget() (*url.URL, *fetchError) {
	location := r.header.Get("Location")
	if location == "" {
		return nil, r.errorf(source.HTTPStatus, "a redirect names no target")
	}
	target, err := r.url.Parse(location)
	if err != nil {
		return nil, r.errorf(source.HTTPStatus, "a redirect to %s, which is not a URL", shorten(location)).withCause(err)
	}
	if reason := addressProblem(r.url, target); reason != "" {
		return nil, r.errorf(source.HTTPStatus, "a redirect to %s is not followed: %s", shorten(location), reason)
	}
	target.Fragment, target.RawFragment = "", ""
	return target, nil
}

// shorten returns a server's text for an error message: without control characters, and cut to about 200 bytes.
func shorten(text string) string { return sanitize(text, 200) }

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

// addressProblem returns the reason why a request to target is forbidden, or "". base is the address of the page or
// redirect that refers to target. target must be on the same site, and must not go from https to http. Its port must be
// the scheme's default, or base must have the same host and port. It must not contain a user name or password.
func addressProblem(base, target *url.URL) string {
	switch {
	case target.Scheme != "http" && target.Scheme != "https":
		return "it is not a web address"
	case target.Hostname() == "":
		return "it names no host"
	case target.User != nil:
		return "it carries a name and password"
	case base.Scheme == "https" && target.Scheme == "http":
		return "it goes from https to http, which is not protected"
	case !sameSite(hostName(base), hostName(target)):
		return "it is another site than " + hostName(base)
	case port(target) != defaultPort(target) && (hostName(base) != hostName(target) || port(base) != port(target)):
		return "it goes to another port"
	default:
		return ""
	}
}

// sameSite reports whether two hosts have the same registrable domain, or are the same IP address.
func sameSite(a, b string) bool {
	return a == b || net.ParseIP(a) == nil && net.ParseIP(b) == nil && source.Site(a) == source.Site(b)
}

// hostName returns the host in normal form: lower case, without a final dot.
func hostName(address *url.URL) string {
	return strings.TrimSuffix(strings.ToLower(address.Hostname()), ".")
}

// port returns the port of an address, or the default of its scheme.
func port(address *url.URL) string { return cmp.Or(address.Port(), defaultPort(address)) }

func defaultPort(address *url.URL) string {
	return map[string]string{"http": "80", "https": "443"}[address.Scheme]
}

package conn

import (
	"bytes"
	"encoding/binary"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// Results of Malformed: sentences for the message of a malformed_request error.
const (
	refusedVersion     = "The protocol version must be HTTP/1.1 or HTTP/1.0."
	refusedTarget      = "The request target must be a path that begins with '/', or an absolute http or https URL without user information."
	refusedTargetByte  = "The request target may hold only visible ASCII characters, and no '#'."
	refusedAsterisk    = "The request target '*' is only allowed with OPTIONS."
	refusedLineEnd     = "The request line and each header line must end in CR LF."
	refusedFold        = "A header must not be continued on a second line."
	refusedName        = "A header name must be a token that is followed by its colon at once."
	refusedRepeated    = "The headers Host, Authorization, Content-Length, Content-Type and Transfer-Encoding must not be repeated."
	refusedNoHost      = "An HTTP/1.1 request needs a Host header."
	refusedHost        = "The Host header must be a host name or an address, with an optional port and nothing else."
	refusedTwoLengths  = "Content-Length and Transfer-Encoding must not come together."
	refusedCoding      = "The only transfer coding understood here is chunked, from HTTP/1.1 on."
	refusedLength      = "Content-Length must be a plain decimal number."
	refusedBodyForRead = "GET and HEAD requests must not carry a body."
)

// Malformed returns a sentence that says why the request must be refused, or "". The caller answers 400
// malformed_request and closes the connection, because it is unknown where the next request begins.
//
// It refuses requests that the HTTP library accepts although RFC 9110 and RFC 9112 do not: two framings at once, bare
// LF, folded lines, HTTP/2.0, user information in Host and so on. It relies on the library for the bytes of header
// names and values, the method, and a second Host or Content-Length. testdata/raw has a case for each, so that a test
// fails if a new version of the library drops a check.
//
// Beyond the RFCs it refuses a body on GET and HEAD, and a repeated Authorization or Content-Type, because proxies and
// servers disagree about them. On connections of a Listener it also returns the findings of framingCheck.
//
// If the request asks to close the connection in a form that the library misses ("Close", "te, close"), Malformed sets
// it on the response.
//
// It runs on every request, in one pass and without allocation. It keeps some headers in f, so that they need not be
// searched for again.
func Malformed(ctx *fasthttp.RequestCtx, f *HeadInfo) string {
	header := &ctx.Request.Header
	isHTTP11 := header.IsHTTP11()
	if !isHTTP11 && string(header.Protocol()) != "HTTP/1.0" {
		return refusedVersion
	}
	if refused := refusedByTarget(header.Method(), header.RequestURI()); refused != "" {
		return refused
	}
	if refused := f.scan(header.RawHeaders()); refused != "" {
		return refused
	}
	if f.closes {
		ctx.Response.Header.SetConnectionClose()
	}
	if conn, ok := ctx.Conn().(*Conn); ok && conn.framing.refused != "" {
		return conn.framing.refused
	}
	if refused := f.refusedByHost(isHTTP11); refused != "" {
		return refused
	}
	if f.seen&(seenLength|seenCoding) == 0 {
		return ""
	}
	return f.refusedByBody(isHTTP11, header.IsGet() || header.IsHead())
}

// refusedByTarget checks the request target: origin form, absolute form, or the asterisk of OPTIONS. Percent-encoding
// is checked where it is decoded.
func refusedByTarget(method, target []byte) string {
	if !visibleTarget(target) {
		return refusedTargetByte
	}
	if target[0] == '/' {
		return ""
	}
	if string(target) == "*" {
		if string(method) != fasthttp.MethodOptions {
			return refusedAsterisk
		}
		return ""
	}
	scheme, authority, hasScheme := bytes.Cut(target, []byte("://"))
	if !hasScheme || !fields.EqualFold(scheme, "http") && !fields.EqualFold(scheme, "https") {
		return refusedTarget
	}
	if end := bytes.IndexAny(authority, "/?"); end >= 0 {
		authority = authority[:end]
	}
	if !validHost(authority) {
		return refusedTarget
	}
	return ""
}

// visibleTarget reports whether a target is not empty, every byte is visible ASCII and none is '#'.
func visibleTarget(target []byte) bool {
	if len(target) == 0 {
		return false
	}
	for len(target) >= 8 {
		if !visibleWord(binary.LittleEndian.Uint64(target)) {
			return false
		}
		target = target[8:]
	}
	for _, c := range target {
		if c <= ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	return true
}

// visibleWord tests eight bytes at once as visibleTarget does. As usual with such arithmetic, a borrow can mark a good
// byte next to a bad one, so it finds that a byte is bad, but not which.
func visibleWord(word uint64) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	hash := word ^ '#'*ones
	del := word ^ 0x7f*ones
	low := (word - ('!' * ones)) &^ word
	bad := word | low | (hash-ones)&^hash | (del-ones)&^del
	return bad&highs == 0
}

// Bits of HeadInfo.seen.
const (
	seenHost = 1 << iota
	seenAuthorization
	seenContentType
	seenLength
	seenCoding
)

// HeadInfo holds the headers that Malformed checks or that the handler needs. The slices are borrowed from the request.
type HeadInfo struct {
	Authorization       []byte // nil without the header
	HasAuthorization    bool
	HasIfNoneMatch      bool
	AcceptEncodingLines int    // number of Accept-Encoding headers
	AcceptEncoding      []byte // the value of the last of them

	host   []byte
	length []byte
	coding []byte
	seen   uint8
	closes bool
}

// scan checks each header line, and returns why the request must be refused, or "". raw ends with the empty line; it is
// empty if there are no headers.
func (f *HeadInfo) scan(raw []byte) string {
	for len(raw) > 0 {
		end := bytes.IndexByte(raw, '\n')
		if end < 1 || raw[end-1] != '\r' {
			return refusedLineEnd
		}
		line := raw[:end-1]
		raw = raw[end+1:]
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			return refusedFold
		}
		colon := 0
		for colon < len(line) && line[colon] != ':' {
			if line[colon] <= ' ' {
				return refusedName
			}
			colon++
		}
		if colon == 0 || colon == len(line) {
			return refusedName
		}
		if refused := f.noteHeader(line[:colon], line[colon+1:]); refused != "" {
			return refused
		}
	}
	return ""
}

// noteHeader keeps the headers that Malformed and the handler need. Comparing the length of the name first excludes
// nearly all others without looking at their bytes.
func (f *HeadInfo) noteHeader(name, value []byte) string {
	var bit uint8
	switch len(name) {
	case len("host"):
		if fields.EqualFold(name, "host") {
			bit, f.host = seenHost, fields.TrimBlanks(value)
		}
	case len("connection"):
		if fields.EqualFold(name, "connection") {
			f.closes = f.closes || listsClose(value)
		}
	case len("content-type"):
		if fields.EqualFold(name, "content-type") {
			bit = seenContentType
		}
	case len("authorization"): // also len("if-none-match")
		if fields.EqualFold(name, "authorization") {
			bit, f.Authorization, f.HasAuthorization = seenAuthorization, fields.TrimBlanks(value), true
		} else if fields.EqualFold(name, "if-none-match") {
			f.HasIfNoneMatch = true
		}
	case len("accept-encoding"):
		if fields.EqualFold(name, "accept-encoding") {
			f.AcceptEncodingLines++
			f.AcceptEncoding = fields.TrimBlanks(value)
		}
	case len("content-length"):
		if fields.EqualFold(name, "content-length") {
			bit, f.length = seenLength, fields.TrimBlanks(value)
		}
	case len("transfer-encoding"):
		if fields.EqualFold(name, "transfer-encoding") {
			bit, f.coding = seenCoding, fields.TrimBlanks(value)
		}
	}
	if f.seen&bit != 0 {
		return refusedRepeated
	}
	f.seen |= bit
	return ""
}

// refusedByHost checks Host: it must be valid, and may only be missing or empty in HTTP/1.0.
func (f *HeadInfo) refusedByHost(isHTTP11 bool) string {
	if len(f.host) == 0 {
		if isHTTP11 {
			return refusedNoHost
		}
		return ""
	}
	if !validHost(f.host) {
		return refusedHost
	}
	return ""
}

// refusedByBody checks a request that has a Content-Length or a Transfer-Encoding.
func (f *HeadInfo) refusedByBody(isHTTP11, isGetOrHead bool) string {
	chunked := f.seen&seenCoding != 0
	if chunked && f.seen&seenLength != 0 {
		return refusedTwoLengths
	}
	if chunked && (!isHTTP11 || !fields.EqualFold(f.coding, "chunked")) {
		return refusedCoding
	}
	empty := true
	for _, c := range f.length {
		if c < '0' || c > '9' {
			return refusedLength
		}
		empty = empty && c == '0'
	}
	if !chunked && len(f.length) == 0 {
		return refusedLength
	}
	if isGetOrHead && (chunked || !empty) {
		return refusedBodyForRead
	}
	return ""
}

// listsClose reports whether a list of connection options contains "close".
func listsClose(value []byte) bool {
	for len(value) > 0 {
		option := value
		if comma := bytes.IndexByte(value, ','); comma >= 0 {
			option, value = value[:comma], value[comma+1:]
		} else {
			value = nil
		}
		if fields.EqualFold(fields.TrimBlanks(option), "close") {
			return true
		}
	}
	return false
}

// validHost reports whether b is a host name, an IPv4 address or an IPv6 address in brackets, with an optional port.
// RFC 3986 allows more, such as "a,b" and "%20", which no real host has. A list of two hosts comes from a faulty proxy.
func validHost(b []byte) bool {
	if len(b) > 0 && b[0] == '[' {
		end := bytes.IndexByte(b, ']')
		return end > 0 && validIPv6(b[1:end]) && fields.ValidPort(b[end+1:])
	}
	end := 0
	for end < len(b) && isHostByte(b[end]) {
		end++
	}
	return end > 0 && fields.ValidPort(b[end:])
}

// isHostByte reports whether a byte may occur in a host name outside brackets.
func isHostByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// validIPv6 checks only the bytes of an address; the library parses it. A zone ("%25eth0") has no meaning on another
// machine and is refused.
func validIPv6(b []byte) bool {
	colons := 0
	for _, c := range b {
		switch {
		case c == ':':
			colons++
		case c == '.', c >= '0' && c <= '9', c|0x20 >= 'a' && c|0x20 <= 'f':
		default:
			return false
		}
	}
	return colons >= 2
}

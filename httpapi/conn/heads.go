package conn

import (
	"bytes"
	"encoding/binary"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// Results of Malformed: reasons for rejecting a request, for the message of a malformed_request error.
const (
	reasonVersion     = "The protocol version must be HTTP/1.1 or HTTP/1.0."
	reasonTarget      = "The request target must be a path that begins with '/', or an absolute http or https URL without user information."
	reasonTargetByte  = "The request target may hold only visible ASCII characters, and no '#'."
	reasonAsterisk    = "The request target '*' is only allowed with OPTIONS."
	reasonLineEnd     = "The request line and each header line must end in CR LF."
	reasonFold        = "A header must not be continued on a second line."
	reasonName        = "A header name must be a token that is followed by its colon at once."
	reasonRepeated    = "The headers Host, Authorization, Content-Length, Content-Type and Transfer-Encoding must not be repeated."
	reasonNoHost      = "An HTTP/1.1 request needs a Host header."
	reasonHost        = "The Host header must be a host name or an address, with an optional port and nothing else."
	reasonTwoLengths  = "Content-Length and Transfer-Encoding must not come together."
	reasonCoding      = "Transfer-Encoding must be chunked, and needs HTTP/1.1."
	reasonLength      = "Content-Length must be a plain decimal number."
	reasonBodyForRead = "GET and HEAD requests must not carry a body."
)

// Malformed returns the reason for rejecting a request, or "". If there is a reason, the caller must answer 400
// malformed_request and close the connection, because the beginning of the next request is unknown.
//
// Malformed rejects requests that RFC 9110 and RFC 9112 forbid and fasthttp accepts, such as those with two lengths,
// bare LF, folded lines, HTTP/2.0, or user information in Host. fasthttp itself checks the bytes of header names and
// values, the method, and repeated Host and Content-Length. If a new version of fasthttp drops one of these checks, a
// test of package httpapi fails (rawcorpus_test.go).
//
// Malformed also rejects two things that the RFCs allow, because proxies and servers treat them differently: a body on
// GET and HEAD, and a repeated Authorization or Content-Type.
//
// The caller must refuse a request with Transfer-Encoding (HeadInfo.Chunked). Two parsers can disagree about the end of
// a chunked body, but not about a Content-Length.
//
// fasthttp ignores some forms of "Connection: close", such as "Close" and "te, close". For these, Malformed sets
// "Connection: close" on the response.
//
// Malformed needs one pass and no allocation. It stores the headers that the handler needs in f.
func Malformed(ctx *fasthttp.RequestCtx, f *HeadInfo) string {
	header := &ctx.Request.Header
	isHTTP11 := header.IsHTTP11()
	if !isHTTP11 && string(header.Protocol()) != "HTTP/1.0" {
		return reasonVersion
	}
	if reason := checkTarget(header.Method(), header.RequestURI()); reason != "" {
		return reason
	}
	if reason := f.scan(header.RawHeaders()); reason != "" {
		return reason
	}
	if f.closes {
		ctx.Response.Header.SetConnectionClose()
	}
	if reason := f.checkHost(isHTTP11); reason != "" {
		return reason
	}
	if f.seen&(seenLength|seenCoding) == 0 {
		return ""
	}
	return f.checkBody(isHTTP11, header.IsGet() || header.IsHead())
}

// checkTarget returns the reason for rejecting a request target, or "". It accepts the origin form, the absolute form,
// and the asterisk with OPTIONS. It does not check percent-encoding.
func checkTarget(method, target []byte) string {
	if !visibleTarget(target) {
		return reasonTargetByte
	}
	if target[0] == '/' {
		return ""
	}
	if string(target) == "*" {
		if string(method) != fasthttp.MethodOptions {
			return reasonAsterisk
		}
		return ""
	}
	scheme, authority, hasScheme := bytes.Cut(target, []byte("://"))
	if !hasScheme || !fields.EqualFold(scheme, "http") && !fields.EqualFold(scheme, "https") {
		return reasonTarget
	}
	if end := bytes.IndexAny(authority, "/?"); end >= 0 {
		authority = authority[:end]
	}
	if !validHost(authority) {
		return reasonTarget
	}
	return ""
}

// visibleTarget reports whether a target is not empty and consists of visible ASCII characters except '#'.
func visibleTarget(target []byte) bool {
	return len(target) > 0 && plainText(target) && bytes.IndexByte(target, ' ') < 0 && bytes.IndexByte(target, '#') < 0
}

// Bits of HeadInfo.seen, for headers that must not be repeated.
const (
	seenHost = 1 << iota
	seenAuthorization
	seenContentType
	seenLength
	seenCoding
)

// HeadInfo contains the headers that the handler and Malformed need. The slices alias the request.
type HeadInfo struct {
	Authorization []byte // nil without the header

	host   []byte
	length []byte
	coding []byte
	seen   uint8
	closes bool
	body   bool
}

// HasBody reports whether the request has a body.
func (f *HeadInfo) HasBody() bool { return f.body }

// Chunked reports whether the request has a Transfer-Encoding. See Malformed.
func (f *HeadInfo) Chunked() bool { return f.seen&seenCoding != 0 }

// scan returns the reason for rejecting the header lines, or "". raw ends with an empty line, or is empty.
func (f *HeadInfo) scan(raw []byte) string {
	for len(raw) > 0 {
		end := bytes.IndexByte(raw, '\n')
		if end < 1 || raw[end-1] != '\r' {
			return reasonLineEnd
		}
		line := raw[:end-1]
		raw = raw[end+1:]
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			return reasonFold
		}
		colon := 0
		for colon < len(line) && line[colon] != ':' {
			if line[colon] <= ' ' {
				return reasonName
			}
			colon++
		}
		if colon == 0 || colon == len(line) {
			return reasonName
		}
		if reason := f.noteHeader(line[:colon], line[colon+1:]); reason != "" {
			return reason
		}
	}
	return ""
}

// noteHeader stores the headers for Malformed and the handler.
func (f *HeadInfo) noteHeader(name, value []byte) string {
	var bit uint8
	switch {
	case fields.EqualFold(name, "host"):
		bit, f.host = seenHost, fields.TrimBlanks(value)
	case fields.EqualFold(name, "connection"):
		f.closes = f.closes || listsClose(value)
	case fields.EqualFold(name, "content-type"):
		bit = seenContentType
	case fields.EqualFold(name, "authorization"):
		bit, f.Authorization = seenAuthorization, fields.TrimBlanks(value)
	case fields.EqualFold(name, "content-length"):
		bit, f.length = seenLength, fields.TrimBlanks(value)
	case fields.EqualFold(name, "transfer-encoding"):
		bit, f.coding = seenCoding, fields.TrimBlanks(value)
	}
	if f.seen&bit != 0 {
		return reasonRepeated
	}
	f.seen |= bit
	return ""
}

// checkHost returns the reason for rejecting the Host header, or "". In HTTP/1.0 the header may be missing or empty.
func (f *HeadInfo) checkHost(isHTTP11 bool) string {
	if len(f.host) == 0 {
		if isHTTP11 {
			return reasonNoHost
		}
		return ""
	}
	if !validHost(f.host) {
		return reasonHost
	}
	return ""
}

// checkBody returns the reason for rejecting the Content-Length or Transfer-Encoding, or "". The request has at least
// one of the two.
func (f *HeadInfo) checkBody(isHTTP11, isGetOrHead bool) string {
	chunked := f.seen&seenCoding != 0
	if chunked && f.seen&seenLength != 0 {
		return reasonTwoLengths
	}
	if chunked && (!isHTTP11 || !fields.EqualFold(f.coding, "chunked")) {
		return reasonCoding
	}
	empty := true
	for _, c := range f.length {
		if c < '0' || c > '9' {
			return reasonLength
		}
		empty = empty && c == '0'
	}
	if !chunked && len(f.length) == 0 {
		return reasonLength
	}
	if f.body = chunked || !empty; f.body && isGetOrHead {
		return reasonBodyForRead
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
// RFC 3986 allows more characters, such as ',' and '%', but real host names do not contain them. A list of two hosts
// comes from a faulty proxy.
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

// validIPv6 checks only the characters of an address; fasthttp parses the address. A zone ("%25eth0") is rejected,
// because it is meaningless on another machine.
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

// PlainGet is the head of a plain GET: a GET without a body that leaves the connection open and contains nothing that
// fasthttp or Malformed could reject. Nearly all requests are plain GETs. The slices alias the argument of
// ParsePlainGet; a missing header is nil.
type PlainGet struct {
	Target                                                    []byte
	Authorization, AcceptEncoding, IfNoneMatch, XForwardedFor []byte
	Length                                                    int // length of the head in bytes
}

const (
	plainBeginning = "GET /"
	plainVersion   = " HTTP/1.1"
)

// ParsePlainGet parses the head at the beginning of read. It returns false for an incomplete head and for any request
// that is not a plain GET. Danger: it must accept only heads that fasthttp and Malformed accept, and find the same end.
// Each rule here is therefore at least as strict as theirs.
func ParsePlainGet(read []byte) (g PlainGet, ok bool) {
	line, length := plainLine(read)
	target, isHTTP11 := bytes.CutSuffix(line, []byte(plainVersion))
	if !isHTTP11 || !bytes.HasPrefix(target, []byte(plainBeginning)) {
		return g, false
	}
	g.Target = target[len(plainBeginning)-1:]
	if !visibleTarget(g.Target) {
		return g, false
	}
	hasHost := false
	for {
		line, next := plainLine(read[length:])
		if length += next; next == len("\r\n") {
			g.Length = length
			return g, hasHost
		}
		nameLength := tokenLength(line)
		if nameLength == 0 || nameLength == len(line) || line[nameLength] != ':' || !plainText(line[nameLength:]) {
			return g, false
		}
		name, value := line[:nameLength], fields.TrimBlanks(line[nameLength+1:])
		keep := (*[]byte)(nil)
		switch nameLength {
		case len("te"), len("trailer"), len("expect"), len("content-type"), len("content-length"), len("transfer-encoding"):
			if isFramingName(name) {
				return g, false
			}
		case len("host"):
			if fields.EqualFold(name, "host") {
				if hasHost || !validHost(value) || value[0] == '[' { // validHost leaves IPv6 addresses to fasthttp
					return g, false
				}
				hasHost = true
			}
		case len("connection"):
			if fields.EqualFold(name, "connection") && !fields.EqualFold(value, "keep-alive") {
				return g, false
			}
		case len("authorization"): // also len("if-none-match")
			if fields.EqualFold(name, "authorization") {
				keep = &g.Authorization
			} else if fields.EqualFold(name, "if-none-match") {
				keep = &g.IfNoneMatch
			}
		case len("accept-encoding"): // also len("x-forwarded-for")
			if fields.EqualFold(name, "accept-encoding") {
				keep = &g.AcceptEncoding
			} else if fields.EqualFold(name, "x-forwarded-for") {
				keep = &g.XForwardedFor
			}
		}
		if keep != nil {
			if *keep != nil || len(value) == 0 {
				return g, false
			}
			*keep = value
		}
	}
}

// plainLine returns the first line of b without its CR LF, and the line's length with CR LF. If b has no complete line,
// the length is 0.
func plainLine(b []byte) (line []byte, length int) {
	end := bytes.IndexByte(b, '\n')
	if end < 1 || b[end-1] != '\r' {
		return nil, 0
	}
	return b[:end-1], end + 1
}

// isFramingName reports whether a header describes the body, or is checked by fasthttp or the handler.
func isFramingName(name []byte) bool {
	for _, framing := range []string{"te", "trailer", "expect", "content-type", "content-length", "transfer-encoding"} {
		if fields.EqualFold(name, framing) {
			return true
		}
	}
	return false
}

// tokenLength returns the number of letters, digits, '-' and '_' at the beginning of b. Other bytes are rare in names.
func tokenLength(b []byte) int {
	n := 0
	for n < len(b) && plainNameBytes[b[n]] {
		n++
	}
	return n
}

var plainNameBytes = func() (table [256]bool) {
	for c := range table {
		table[c] = 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
	}
	return table
}()

// plainText reports whether text has only visible ASCII characters and spaces.
func plainText(text []byte) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	for len(text) >= 8 {
		word := binary.LittleEndian.Uint64(text)
		del := word ^ 0x7f*ones
		if (word|(word-' '*ones)&^word|(del-ones)&^del)&highs != 0 {
			return false
		}
		text = text[8:]
	}
	for _, c := range text {
		if c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

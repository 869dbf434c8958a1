package fields

import (
	"bytes"
	"encoding/base64"
	"net/netip"
	"slices"
	"strconv"
	"time"
	"unsafe"
)

// EqualFold reports whether b equals lowercase, ignoring case. lowercase consists of small letters and hyphens. Danger:
// b must not contain control characters, because EqualFold would take CR for a hyphen.
func EqualFold(b []byte, lowercase string) bool {
	if len(b) != len(lowercase) {
		return false
	}
	for i, c := range b {
		if c|0x20 != lowercase[i] {
			return false
		}
	}
	return true
}

// TrimBlanks removes spaces and tabs from both ends of a header value.
func TrimBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

const portDigitsMax = 5 // 65535

// ValidPort reports whether b is empty, a colon, or a colon and a port of at most 65535 (RFC 3986, section 3.2.3).
func ValidPort(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if b[0] != ':' || len(b) > 1+portDigitsMax {
		return false
	}
	port := 0
	for _, c := range b[1:] {
		if c < '0' || c > '9' {
			return false
		}
		port = port*10 + int(c-'0')
	}
	return port <= 65535
}

// RetryAfter formats the value of Retry-After: whole seconds, rounded up, at least 1.
func RetryAfter(wait time.Duration) string {
	return strconv.FormatInt(max(1, int64((wait+time.Second-1)/time.Second)), 10)
}

// qualityMax is the quality value 1, in thousandths.
const qualityMax = 1000

// AcceptsGzip reports whether Accept-Encoding allows gzip, by name or with "*", and does not prefer identity. lines are
// the values of all Accept-Encoding headers. Without lines the result is false.
func AcceptsGzip(lines [][]byte) bool {
	gzip, star, identity := -1, -1, -1
	for _, line := range lines {
		for len(line) > 0 {
			item := line
			if comma := bytes.IndexByte(line, ','); comma >= 0 {
				item, line = line[:comma], line[comma+1:]
			} else {
				line = nil
			}
			coding, quality := codingQuality(item)
			switch {
			case EqualFold(coding, "gzip"), EqualFold(coding, "x-gzip"):
				gzip = max(gzip, quality)
			case string(coding) == "*":
				star = quality
			case EqualFold(coding, "identity"):
				identity = quality
			}
		}
	}
	if gzip < 0 {
		gzip = star
	}
	return gzip > 0 && gzip >= identity
}

// codingQuality splits an item such as "gzip;q=0.5" into the coding and the quality in thousandths. An invalid quality
// counts as 0, which means that the coding is not accepted.
func codingQuality(item []byte) (coding []byte, quality int) {
	semicolon := bytes.IndexByte(item, ';')
	if semicolon < 0 {
		return TrimBlanks(item), qualityMax
	}
	weight := TrimBlanks(item[semicolon+1:])
	if len(weight) < 2 || weight[0]|0x20 != 'q' || weight[1] != '=' {
		return TrimBlanks(item[:semicolon]), 0
	}
	return TrimBlanks(item[:semicolon]), thousandths(weight[2:])
}

// thousandths parses a quality value from 0 to 1 with at most three decimals. It returns 0 for invalid text.
func thousandths(text []byte) int {
	const lengthMax = len("0.000")
	if len(text) == 0 || len(text) > lengthMax || text[0] != '0' && text[0] != '1' || len(text) > 1 && text[1] != '.' {
		return 0
	}
	quality := int(text[0]-'0') * qualityMax
	for place, decimals := 100, text[min(2, len(text)):]; len(decimals) > 0; place, decimals = place/10, decimals[1:] {
		if decimals[0] < '0' || decimals[0] > '9' {
			return 0
		}
		quality += int(decimals[0]-'0') * place
	}
	if quality > qualityMax {
		return 0
	}
	return quality
}

// ETagDigestBytes is the number of digest bytes in an ETag. 128 bits make a collision practically impossible.
const ETagDigestBytes = 16

// AppendETag appends a weak ETag, W/"…", with the beginning of a digest in base64.
func AppendETag(dst, digest []byte) []byte {
	dst = append(dst, `W/"`...)
	dst = base64.RawURLEncoding.AppendEncode(dst, digest[:ETagDigestBytes])
	return append(dst, '"')
}

// IfNoneMatchHits reports whether If-None-Match is "*" or contains etag (weak comparison), so that the response must be
// a 304. lines are the values of all If-None-Match headers. Tags after a malformed tag in a line are ignored.
func IfNoneMatchHits(lines [][]byte, etag []byte) bool {
	if len(lines) == 1 && string(TrimBlanks(lines[0])) == "*" {
		return true
	}
	opaque := bytes.TrimPrefix(etag, []byte("W/"))
	for _, line := range lines {
		if listsETag(line, opaque) {
			return true
		}
	}
	return false
}

// listsETag reports whether a comma-separated list of ETags contains a tag. opaque is the tag without W/.
func listsETag(list, opaque []byte) bool {
	for {
		list = bytes.TrimLeft(list, " \t,")
		tag := bytes.TrimPrefix(list, []byte("W/"))
		end := etagEnd(tag)
		if end == 0 {
			return false
		}
		rest := TrimBlanks(tag[end:])
		if len(rest) > 0 && rest[0] != ',' {
			return false
		}
		if bytes.Equal(tag[:end], opaque) {
			return true
		}
		list = rest
	}
}

// etagEnd returns the length of the quoted tag at the beginning of text, or 0 if there is none. A tag may contain any
// visible character except the quote.
func etagEnd(text []byte) int {
	if len(text) == 0 || text[0] != '"' {
		return 0
	}
	for i, c := range text[1:] {
		switch {
		case c == '"':
			return i + 2
		case c <= ' ' || c == 0x7f:
			return 0
		}
	}
	return 0
}

// Lines converts a header's values to the argument type of this package's functions.
func Lines(values []string) [][]byte {
	lines := make([][]byte, len(values))
	for i, value := range values {
		lines[i] = []byte(value)
	}
	return lines
}

// addressBytesMax is the maximum length of an address with zone, brackets and port.
const addressBytesMax = 80

// TrustedProxies are the networks of proxies with a trusted X-Forwarded-For.
type TrustedProxies []netip.Prefix

// Contains reports whether an address belongs to a trusted proxy.
func (p TrustedProxies) Contains(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// ClientAddress returns the address of a client behind proxies. peer is the last proxy, and lines are the values of the
// X-Forwarded-For headers.
//
// Each proxy appends the address of its peer, and a client can invent all earlier addresses. ClientAddress therefore
// goes from right to left, and returns the first address that is not of a trusted proxy (or the leftmost, if all are).
// At a malformed entry it returns the address of the proxy that wrote the entry.
func (p TrustedProxies) ClientAddress(peer netip.Addr, lines [][]byte) netip.Addr {
	client := peer
	for i := len(lines) - 1; i >= 0; i-- {
		rest := lines[i]
		for len(rest) > 0 {
			entry := rest
			if comma := bytes.LastIndexByte(rest, ','); comma >= 0 {
				rest, entry = rest[:comma], rest[comma+1:]
			} else {
				rest = nil
			}
			if entry = TrimBlanks(entry); len(entry) == 0 {
				continue
			}
			addr, ok := forwardedAddress(entry)
			if !ok {
				return client
			}
			if client = addr; !p.Contains(addr) {
				return client
			}
		}
	}
	return client
}

// forwardedAddress parses 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1] or [2001:db8::1]:80. It removes the zone
// of an IPv6 address, because a zone is meaningful only on the proxy.
func forwardedAddress(entry []byte) (addr netip.Addr, ok bool) {
	if len(entry) > addressBytesMax {
		return netip.Addr{}, false
	}
	var err error
	last, colon := len(entry)-1, bytes.IndexByte(entry, ':')
	switch {
	case entry[0] == '[' && entry[last] == ']':
		if colon >= 0 {
			addr, err = netip.ParseAddr(textOf(entry[1:last]))
		}
	case entry[0] == '[', colon >= 0 && bytes.IndexByte(entry[colon+1:], ':') < 0:
		if port := entry[bytes.LastIndexByte(entry, ':')+1:]; len(port) <= len("65535") {
			var addrPort netip.AddrPort
			addrPort, err = netip.ParseAddrPort(textOf(entry))
			addr = addrPort.Addr()
		}
	default:
		addr, err = netip.ParseAddr(textOf(entry))
	}
	return addr.WithZone("").Unmap(), err == nil && addr.IsValid()
}

// textOf returns bytes as a string without a copy. Danger: the string changes with the bytes, so do not retain it.
func textOf(borrowed []byte) string { return unsafe.String(unsafe.SliceData(borrowed), len(borrowed)) }

// LoggedNetwork returns the network of an address for logs: the /24 of an IPv4 address, the /48 of an IPv6 address, or
// "unknown" for the zero address.
func LoggedNetwork(addr netip.Addr) string {
	bits := 48
	if addr.Is4() {
		bits = 24
	}
	network, err := addr.Prefix(bits)
	if err != nil || !addr.IsValid() {
		return "unknown"
	}
	return network.String()
}

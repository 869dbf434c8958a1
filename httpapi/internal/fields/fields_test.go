package fields

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// forwardedRow is the X-Forwarded-For of a request from the proxy 10.1.2.3, where 10.0.0.0/8 is trusted, and the client
// that counts.
type forwardedRow struct{ name, header, want string }

const forwardingProxy = "10.1.2.3"

func forwardedTable() []forwardedRow {
	return []forwardedRow{
		{"one address", "192.0.2.1", "192.0.2.1"},
		{"empty header", "", forwardingProxy},
		{"made up on the left", "192.0.2.99, 192.0.2.1", "192.0.2.1"},
		{"two proxies", "192.0.2.99, 192.0.2.1, 10.9.9.9", "192.0.2.1"},
		{"a proxy made up on the left", "10.0.0.1, 192.0.2.1, 10.9.9.9", "192.0.2.1"},
		{"only proxies: the leftmost", "10.0.0.1, 10.0.0.2", "10.0.0.1"},
		{"the same twice", "192.0.2.1, 192.0.2.1", "192.0.2.1"},
		{"two lines", "192.0.2.1\n10.9.9.9", "192.0.2.1"},
		{"no blanks", "192.0.2.99,192.0.2.1,10.0.0.1", "192.0.2.1"},
		{"tabs and blanks", "192.0.2.99 ,\t 192.0.2.1 \t, 10.0.0.1", "192.0.2.1"},
		{"empty entries", "192.0.2.99, 192.0.2.1,, ,", "192.0.2.1"},
		{"only commas", ",,,", forwardingProxy},
		{"port", "192.0.2.1:4711", "192.0.2.1"},
		{"port, then a proxy", "192.0.2.1:80, 10.0.0.1", "192.0.2.1"},
		{"port too large", "192.0.2.1:65536", forwardingProxy},
		{"port too long", "192.0.2.1:000080", forwardingProxy},
		{"colon without port", "192.0.2.1:", forwardingProxy},
		{"IPv6", "2001:db8::1", "2001:db8::1"},
		{"IPv6 in brackets", "[2001:db8::1]", "2001:db8::1"},
		{"IPv6 with port", "[2001:db8::1]:443", "2001:db8::1"},
		{"IPv6 with port, then a line of a proxy", "[2001:db8::1]:443\n10.9.9.9", "2001:db8::1"},
		{"IPv6 with a bad port", "[2001:db8::1]x", forwardingProxy},
		{"IPv6 with a colon", "[2001:db8::1]:", forwardingProxy},
		{"IPv6 with half a bracket", "[2001:db8::1", forwardingProxy},
		{"IPv6 with zone", "fe80::1%eth0", "fe80::1"},
		{"IPv6 with zone, then commas", "fe80::1%eth0,,", "fe80::1"},
		{"IPv6 with zone, brackets, port", "[fe80::1%25eth0]:80", "fe80::1"},
		{"IPv6 with an empty zone", "fe80::1%", forwardingProxy},
		{"IPv4 with zone", "192.0.2.1%eth0", forwardingProxy},
		{"IPv4 in brackets", "[192.0.2.1]", forwardingProxy},
		{"mapped", "::ffff:192.0.2.1", "192.0.2.1"},
		{"mapped proxy in the list", "192.0.2.1, ::ffff:10.0.0.1", "192.0.2.1"},
		{"unknown before a proxy: the proxy that wrote it", "192.0.2.1, unknown, 10.0.0.9", "10.0.0.9"},
		{"rubbish on the left", "<script>, 192.0.2.1", "192.0.2.1"},
		{"leading zeros", "192.0.2.01", forwardingProxy},
		{"a number", "3221225985", forwardingProxy},
		{"three parts", "192.0.2", forwardingProxy},
		{"quoted", `"192.0.2.1"`, forwardingProxy},
		{"semicolon", "192.0.2.1; 192.0.2.2", forwardingProxy},
		{"very long entry", strings.Repeat("1", 5000), forwardingProxy},
		{"very long zone", "fe80::1%" + strings.Repeat("z", 5000), forwardingProxy},
	}
}

// TestL8_ForwardedFor: the address from the right that is not a trusted proxy is the client (decision L8).
func TestL8_ForwardedFor(t *testing.T) {
	trusted := TrustedProxies{netip.MustParsePrefix("10.0.0.0/8")}
	for _, row := range forwardedTable() {
		var lines [][]byte
		for line := range strings.SplitSeq(row.header, "\n") {
			lines = append(lines, []byte(line))
		}
		if got := trusted.ClientAddress(netip.MustParseAddr(forwardingProxy), lines).String(); got != row.want {
			t.Errorf("%s: %.80q counts %s, want %s", row.name, row.header, got, row.want)
		}
	}
}

// FuzzForwardedFor holds the walk against a slow reading of the same rules.
func FuzzForwardedFor(f *testing.F) {
	for _, row := range forwardedTable() {
		f.Add(row.header)
	}
	trusted := TrustedProxies{netip.MustParsePrefix("10.0.0.0/8")}
	peer := netip.MustParseAddr(forwardingProxy)
	f.Fuzz(func(t *testing.T, text string) {
		var lines [][]byte
		var entries []string
		for _, line := range strings.Split(text, "\n") {
			lines = append(lines, []byte(line))
			entries = append(entries, strings.Split(line, ",")...)
		}
		want := peer
		for i := len(entries) - 1; i >= 0; i-- {
			entry := strings.Trim(entries[i], " \t")
			if entry == "" {
				continue
			}
			addr, ok := oracleAddress(entry)
			if !ok {
				break
			}
			if want = addr; !trusted.Contains(addr) {
				break
			}
		}
		if got := trusted.ClientAddress(peer, lines); got != want {
			t.Fatalf("%q: %s, want %s", text, got, want)
		}
	})
}

// oracleAddress reads an entry with the standard library.
func oracleAddress(entry string) (netip.Addr, bool) {
	if len(entry) > addressBytesMax {
		return netip.Addr{}, false
	}
	bracketed := strings.HasPrefix(entry, "[") && strings.HasSuffix(entry, "]")
	if bracketed {
		entry += ":0"
	}
	if port, err := netip.ParseAddrPort(entry); err == nil {
		digits := len(entry) - 1 - strings.LastIndexByte(entry, ':')
		return port.Addr().WithZone("").Unmap(), digits <= len("65535")
	}
	addr, err := netip.ParseAddr(entry)
	return addr.WithZone("").Unmap(), err == nil && !bracketed
}

const testTag = `W/"0123456789abcdefABCDEF"`

// ifNoneMatchTable has values of If-None-Match by name, and whether they match testTag.
func ifNoneMatchTable() map[string]struct {
	header string
	hits   bool
} {
	tag, opaque := testTag, testTag[2:]
	return map[string]struct {
		header string
		hits   bool
	}{
		"the tag": {tag, true}, "weak comparison": {opaque, true}, "any": {"*", true}, "any, with blanks": {" * ", true},
		"second in the list": {`"a", ` + tag, true}, "a comma in a tag": {`W/"a,b" ,` + tag + `, "y"`, true}, "an empty tag and entry before": {`"",,` + tag, true},
		"a comma behind": {tag + ",", true}, "a backslash is no escape": {`"\", ` + tag, true},
		"no comma between": {`"a" ` + tag, false}, "an open quote": {`"a,` + tag, false}, "weak twice": {"W/" + tag, false}, "a small w": {"w/" + opaque, false},
		"no quotes": {"x", false}, "half the quotes": {tag[3:], false}, "any is no entry": {"*, " + tag, false}, "text behind": {tag + "x", false},
		"empty": {"", false}, "another": {`"x"`, false}, "another, weak": {`W/"x"`, false},
	}
}

// TestQ12_IfNoneMatch: weak comparison with each tag of the list (RFC 9110 13.1.2).
func TestQ12_IfNoneMatch(t *testing.T) {
	for name, row := range ifNoneMatchTable() {
		if got := IfNoneMatchHits([][]byte{[]byte(row.header)}, []byte(testTag)); got != row.hits {
			t.Errorf("%s: %q hits %v, want %v", name, row.header, got, row.hits)
		}
	}
}

// FuzzIfNoneMatch holds the walk over entity tags against a regular expression.
func FuzzIfNoneMatch(f *testing.F) {
	const tag = testTag
	for _, row := range ifNoneMatchTable() {
		f.Add(row.header)
	}
	list := regexp.MustCompile(`^[ \t,]*(?:W/)?("[^\x00-\x20"\x7f]*")[ \t]*(?:,|$)`)
	f.Fuzz(func(t *testing.T, header string) {
		got := IfNoneMatchHits([][]byte{[]byte(header)}, []byte(tag))
		want := strings.Trim(header, " \t") == "*"
		for rest := header; !want; {
			found := list.FindStringSubmatchIndex(rest)
			if found == nil {
				break
			}
			want = rest[found[2]:found[3]] == tag[2:]
			rest = rest[found[1]:]
		}
		if got != want {
			t.Fatalf("%q: %v, want %v", header, got, want)
		}
	})
}

// acceptEncodingTable has values of Accept-Encoding by name, and whether they accept gzip.
func acceptEncodingTable() map[string]struct {
	header string
	gzip   bool
} {
	return map[string]struct {
		header string
		gzip   bool
	}{
		"plain": {"gzip", true}, "capitals": {"GZIP", true}, "the old name": {"x-gzip", true}, "any": {"*", true}, "any, a little": {"br, *;q=0.1", true},
		"quality 1.0": {"deflate, gzip;q=1.0, *;q=0.5", true}, "a small quality": {"br;q=1, gzip;q=0.001", true}, "as good as identity": {"identity;q=0.5, gzip;q=0.5", true},
		"a blank before q": {"gzip; q=0.5", true}, "blanks around the semicolon": {"gzip ; q=0.5", true}, "blanks": {" gzip ,br", true}, "empty entries": {",,gzip", true},
		"named beats any": {"*;q=0,gzip", true},
		"refused":         {"gzip;q=0", false}, "refused with zeros": {"gzip;q=0.000", false}, "refused, but any": {"gzip;q=0, *", false}, "nothing": {"*;q=0", false},
		"another": {"br", false}, "empty": {"", false}, "identity": {"identity", false}, "identity preferred": {"identity;q=1, gzip;q=0.5", false},
		"identity a little preferred": {"identity;q=1,gzip;q=0.9", false}, "quality 2": {"gzip;q=2", false}, "no number": {"gzip;q=x", false}, "no quality": {"gzip;q=", false},
		"another parameter": {"gzip;level=9", false}, "above 1": {"gzip;q=1.001", false}, "four digits": {"gzip;q=0.1234", false}, "four zeros": {"gzip;q=1.0000", false},
		"longer name": {"gzipped", false}, "no name": {";q=1", false}, "the better of both names": {"x-gzip;q=0.001,gzip;q=0", true},
	}
}

// TestQ11_AcceptEncoding: gzip is sent if it is accepted, and not less wanted than identity (RFC 9110 12.5.3).
func TestQ11_AcceptEncoding(t *testing.T) {
	for name, row := range acceptEncodingTable() {
		if got := AcceptsGzip([][]byte{[]byte(row.header)}); got != row.gzip {
			t.Errorf("%s: %q accepts gzip: %v, want %v", name, row.header, got, row.gzip)
		}
	}
}

// FuzzAcceptEncoding holds the choice of gzip against a slow reading of the same rules.
func FuzzAcceptEncoding(f *testing.F) {
	for _, row := range acceptEncodingTable() {
		f.Add(row.header)
	}
	item := regexp.MustCompile(`^[ \t]*([^;]*?)[ \t]*(?:;[ \t]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)[ \t]*)?$`)
	f.Fuzz(func(t *testing.T, header string) {
		if strings.ContainsAny(header, "\r\n\x00") {
			t.Skip("no header value holds these")
		}
		quality := map[string]int{"gzip": -1, "*": -1, "identity": -1}
		for _, part := range strings.Split(header, ",") {
			coding, _, _ := strings.Cut(part, ";")
			coding = strings.Trim(coding, " \t")
			for _, known := range []string{"gzip", "x-gzip", "identity"} {
				if strings.EqualFold(coding, known) {
					coding = strings.TrimPrefix(known, "x-")
				}
			}
			q := 0
			if found := item.FindStringSubmatch(part); found != nil {
				q = oracleQuality(found[2])
			}
			if coding == "gzip" {
				q = max(q, quality["gzip"])
			}
			quality[coding] = q
		}
		if quality["gzip"] < 0 {
			quality["gzip"] = quality["*"]
		}
		want := quality["gzip"] > 0 && quality["gzip"] >= quality["identity"]
		if got := AcceptsGzip([][]byte{[]byte(header)}); got != want {
			t.Fatalf("%q: %v, want %v", header, got, want)
		}
	})
}

// oracleQuality is a quality in thousandths; none means 1.
func oracleQuality(text string) int {
	if text == "" {
		return qualityMax
	}
	whole, fraction, _ := strings.Cut(text, ".")
	number, err := strconv.Atoi(whole + (fraction + "000")[:3])
	if err != nil {
		return 0
	}
	return number
}

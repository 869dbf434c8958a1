package fields

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// FuzzIfNoneMatch holds the walk over entity tags against a regular expression.
func FuzzIfNoneMatch(f *testing.F) {
	const tag = `W/"0123456789abcdefABCDEF"`
	for _, seed := range []string{tag, tag[2:], "*", " * ", `"a", ` + tag, `"a" ` + tag, `"a,` + tag, "W/" + tag, `"",,` + tag, tag + ",", "w/" + tag[2:], `"\", ` + tag, `W/"a,b" ,` + tag + `, "y"`, "x", tag[3:], "*, " + tag, tag + "x", ""} {
		f.Add(seed)
	}
	list := regexp.MustCompile(`^[ \t,]*(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?:,|$)`)
	f.Fuzz(func(t *testing.T, header string) {
		got := IfNoneMatchHits([][]byte{[]byte(header)}, []byte(tag))
		want := strings.Trim(header, " \t") == "*"
		for rest := latin(header); !want; {
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

// latin makes each byte a character, so that a regular expression sees bytes.
func latin(text string) string {
	var out strings.Builder
	for i := range len(text) {
		out.WriteRune(rune(text[i]))
	}
	return out.String()
}

// FuzzAcceptEncoding holds the choice of gzip against a slow reading of the same rules.
func FuzzAcceptEncoding(f *testing.F) {
	for _, seed := range []string{
		"GZIP", "*", "deflate, gzip;q=1.0, *;q=0.5", "br;q=1, gzip;q=0.001", "identity;q=0.5, gzip;q=0.5", " gzip ,br", ",,gzip", "gzip;q=0.000", "gzip;q=0, *", "", "identity",
		"gzip;q=2", "gzip;q=x", "gzip;level=9", "gzip;q=1.001", "gzip;q=0.1234", "gzipped", "gzip;q=",
		"gzip", "gzip;q=0", "br, *;q=0.1", "identity;q=1,gzip;q=0.9", "x-gzip;q=0.001,gzip;q=0", "gzip;q=1.0000", "gzip ; q=0.5", ";q=1", "*;q=0,gzip",
	} {
		f.Add(seed)
	}
	item := regexp.MustCompile(`^[ \t]*([^;]*?)[ \t]*(?:;[ \t]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)[ \t]*)?$`)
	f.Fuzz(func(t *testing.T, header string) {
		if strings.ContainsAny(header, "\r\n\x00") {
			t.Skip("no header value holds these")
		}
		quality := map[string]int{"gzip": -1, "*": -1, "identity": -1}
		for _, part := range strings.Split(latin(header), ",") {
			coding, _, _ := strings.Cut(part, ";")
			coding = strings.ToLower(strings.Trim(coding, " \t"))
			q := 0
			if found := item.FindStringSubmatch(part); found != nil {
				q = oracleQuality(found[2])
			}
			if coding == "x-gzip" {
				coding = "gzip"
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

package fetch

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/temoto/robotstxt"
)

// productToken is our name in robots.txt.
const productToken = "tasard"

// crawlDelayMax bounds what Crawl-delay can ask for. It is no part of RFC 9309, and a longer one would not fit into a Fetch.
const crawlDelayMax = 10 * time.Second

// wildcardsMax bounds how many rules with wildcards are compiled; patternBytesMax bounds each. A robots.txt of 512 KiB could make
// hundreds of megabytes of them. Beyond that a rule is cut before its first wildcard, which forbids more and never less.
const (
	wildcardsMax    = 200
	patternBytesMax = 200
)

// rules are what a robots.txt says to us.
type rules struct {
	group *robotstxt.Group // nil = everything is allowed
}

// allows reports whether an address may be asked for.
func (r rules) allows(address *url.URL) bool {
	if r.group == nil {
		return true
	}
	path := address.EscapedPath()
	if path == "" {
		path = "/"
	}
	if address.RawQuery != "" {
		path += "?" + address.RawQuery
	}
	return r.group.Test(path)
}

// crawlDelay is the pause that the site wants between two requests.
func (r rules) crawlDelay() time.Duration {
	if r.group == nil {
		return 0
	}
	return min(r.group.CrawlDelay, crawlDelayMax)
}

// parseRules reads a robots.txt. What is no rule is passed over (RFC 9309, 2.2): a page of HTML allows everything.
//
// The library judges; what reaches it is only our own group, one clean line each, because by itself it gives up a whole file for
// one bad line, takes the line after an empty value for the value, and compiles every pattern of every group.
func parseRules(text []byte) rules {
	clean := sanitizeRules(string(text))
	if clean == "" {
		return rules{}
	}
	data, err := robotstxt.FromString("user-agent: *\n" + clean)
	if err != nil {
		return rules{} // can't be: every line has been looked at
	}
	return rules{group: data.FindGroup(productToken)}
}

// sanitizeRules gives the rules of the groups that name us, or else of those for everybody.
func sanitizeRules(text string) string {
	var own, everybody strings.Builder
	var toUs, toAll, named, inRules bool
	patterns := 0
	for line := range strings.FieldsFuncSeq(strings.TrimPrefix(text, "\ufeff"), func(r rune) bool { return r == '\n' || r == '\r' }) {
		key, value := ruleLine(line)
		switch key {
		case "user-agent":
			if inRules { // a new group begins
				toUs, toAll, inRules = false, false, false
			}
			toUs, toAll = toUs || strings.EqualFold(value, productToken), toAll || value == "*"
			named = named || toUs
		case "allow", "disallow", "crawl-delay":
			inRules = true
			if !toUs && !toAll {
				continue
			}
			rule := sanitizeRule(key, value, &patterns)
			if toUs {
				own.WriteString(rule)
			}
			if toAll {
				everybody.WriteString(rule)
			}
		}
	}
	if named {
		return own.String()
	}
	return everybody.String()
}

// ruleLine cuts a line into its key in small letters and its value.
func ruleLine(line string) (key, value string) {
	line, _, _ = strings.Cut(line, "#")
	key, value, _ = strings.Cut(line, ":")
	value, _, _ = strings.Cut(strings.TrimSpace(strings.ReplaceAll(value, "\t", " ")), " ")
	return strings.ToLower(strings.TrimSpace(key)), value
}

// sanitizeRule is a line that the library reads without fail, or "" for one that says nothing.
func sanitizeRule(key, value string, patterns *int) string {
	if key == "crawl-delay" {
		seconds, err := time.ParseDuration(value + "s")
		if err != nil || seconds < 0 {
			return ""
		}
		whole := (min(seconds, crawlDelayMax) + time.Second - 1) / time.Second
		return "crawl-delay: " + strconv.Itoa(int(whole)) + "\n"
	}
	value = strings.ToValidUTF8(strings.Map(printable, value), "")
	if strings.ContainsAny(strings.TrimRight(value, "*"), "*$") {
		if *patterns++; *patterns > wildcardsMax || len(value) > patternBytesMax {
			if key == "allow" {
				return ""
			}
			value = value[:strings.IndexAny(value, "*$")]
			if value == "" {
				value = "/"
			}
		}
	}
	if value == "" {
		return ""
	}
	return key + ": " + value + "\n"
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

package fetch

import (
	"net/url"
	"strings"
	"time"
)

// productToken names this program in the User-agent lines of a robots.txt.
const productToken = "tasard"

// crawlDelayMax bounds Crawl-delay, to keep a Fetch within its timeout.
const crawlDelayMax = 10 * time.Second

// rules are a robots.txt's rules for this program. The zero value allows everything.
type rules struct {
	paths      []pathRule
	crawlDelay time.Duration
}

// pathRule is one Allow or Disallow line.
type pathRule struct {
	pattern string // prefix of a path; * matches any characters, a final $ the end of the path
	allow   bool
}

// allows reports whether an address may be requested. The longest matching rule decides. If two of equal length match,
// the Allow rule decides.
func (r *rules) allows(address *url.URL) bool {
	path := address.EscapedPath()
	if path == "" {
		path = "/"
	}
	if address.RawQuery != "" {
		path += "?" + address.RawQuery
	}
	longest, allowed := 0, true
	for _, rule := range r.paths {
		length := len(rule.pattern)
		if (length > longest || length == longest && rule.allow) && rule.matches(path) {
			longest, allowed = length, rule.allow
		}
	}
	return allowed
}

func (r pathRule) matches(path string) bool {
	pattern, anchored := strings.CutSuffix(r.pattern, "$")
	literal, remaining, wildcard := strings.Cut(pattern, "*")
	path, matches := strings.CutPrefix(path, literal)
	for matches && wildcard {
		literal, remaining, wildcard = strings.Cut(remaining, "*")
		if !wildcard && anchored {
			return strings.HasSuffix(path, literal)
		}
		_, path, matches = strings.Cut(path, literal)
	}
	return matches && (!anchored || path == "")
}

// parseRules parses a robots.txt. A group is one or more User-agent lines and the rules after them. The result is the
// rules of the groups for this program or, without any, of the groups for all programs (*). Lines that are not rules
// are skipped (RFC 9309, section 2.2), so an HTML page allows everything.
func parseRules(text []byte) rules {
	var ownRules, commonRules rules
	var matchesUs, matchesAll, hasOwnGroup, inRules bool
	isLineEnd := func(r rune) bool { return r == '\n' || r == '\r' }
	for line := range strings.FieldsFuncSeq(strings.TrimPrefix(string(text), "\ufeff"), isLineEnd) {
		key, value := ruleLine(line)
		switch key {
		case "user-agent":
			if inRules { // this line begins a new group
				matchesUs, matchesAll, inRules = false, false, false
			}
			matchesUs, matchesAll = matchesUs || strings.EqualFold(value, productToken), matchesAll || value == "*"
			hasOwnGroup = hasOwnGroup || matchesUs
		case "allow", "disallow", "crawl-delay":
			inRules = true
			if matchesUs {
				ownRules.add(key, value)
			}
			if matchesAll {
				commonRules.add(key, value)
			}
		}
	}
	if hasOwnGroup {
		return ownRules
	}
	return commonRules
}

// ruleLine splits a line into its key, in lower case, and its value. It removes a comment at the end.
func ruleLine(line string) (key, value string) {
	line, _, _ = strings.Cut(line, "#")
	key, value, _ = strings.Cut(line, ":")
	value, _, _ = strings.Cut(strings.TrimSpace(strings.ReplaceAll(value, "\t", " ")), " ")
	return strings.ToLower(strings.TrimSpace(key)), value
}

// add adds the rule of one line. It rounds a Crawl-delay up to whole seconds.
func (r *rules) add(key, value string) {
	if key == "crawl-delay" {
		if delay, err := time.ParseDuration(value + "s"); err == nil && delay >= 0 {
			r.crawlDelay = (min(delay, crawlDelayMax) + time.Second - 1).Truncate(time.Second)
		}
		return
	}
	if value != "" {
		r.paths = append(r.paths, pathRule{strings.Clone(value), key == "allow"})
	}
}

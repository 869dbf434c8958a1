package fetch

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// robotsAgeMax is the age at which a robots.txt is fetched again (RFC 9309, section 2.4).
const robotsAgeMax = 24 * time.Hour

// robotsRules are the rules in the robots.txt of one origin.
type robotsRules struct {
	paths     []pathRule
	fetchedAt time.Time
}

// checkRobots returns an error if robots.txt disallows the address. Each origin (scheme, host and port) has its own
// robots.txt (RFC 9309, section 2.3).
func (s *session) checkRobots(ctx context.Context, address *url.URL) *fetchError {
	base := &url.URL{Scheme: address.Scheme, Host: address.Host}
	value, known := s.client.robots.Load(base.String())
	rules, _ := value.(robotsRules)
	if age := s.client.config.Clock().Sub(rules.fetchedAt); !known || age >= robotsAgeMax || age < 0 {
		fetched, fetchErr := s.fetchRobots(ctx, base)
		switch {
		case fetchErr == nil:
			rules = fetched
			s.client.robots.Store(base.String(), rules)
		case !known:
			return fetchErr
		}
	}
	if !allows(rules.paths, address) {
		return newFetchError(source.Blocked, "%s: %s/robots.txt does not allow us (%q) to ask for it; if the institution does, "+
			"set ignoreRobots in the definition", address, base, productToken)
	}
	return nil
}

// fetchRobots returns the rules of an origin. A missing robots.txt (4xx) allows everything. If it can't be fetched
// (5xx, no connection), an older copy stays in use; without one the Fetch fails (RFC 9309, section 2.3.1).
func (s *session) fetchRobots(ctx context.Context, base *url.URL) (robotsRules, *fetchError) {
	resp, fetchErr := s.doWithRetries(ctx, plannedRequest{
		method: http.MethodGet, url: base.JoinPath("robots.txt"), header: s.header("text/plain,*/*;q=0.5"),
		limit: robotsBytesMax, truncate: true, isRobots: true,
	})
	now := s.client.config.Clock()
	switch {
	case fetchErr == nil:
		return robotsRules{parseRules(resp.body), now}, nil
	case fetchErr.status >= 300 && fetchErr.status < 500: // missing, or a redirect that is not followed
		return robotsRules{fetchedAt: now}, nil
	}
	fetchErr.failure.Detail = "fetch robots.txt before anything else: " + fetchErr.failure.Detail
	fetchErr.retryable = false // doWithRetries has retried it already
	return robotsRules{}, fetchErr
}

// productToken names this program in the User-agent lines of a robots.txt.
const productToken = "tasard"

// pathRule is one Allow or Disallow line.
type pathRule struct {
	pattern string // prefix of a path; * matches any characters, a final $ the end of the path
	allow   bool
}

// allows reports whether rules allow an address. The longest matching rule decides. If two of equal length match, the
// Allow rule decides. No rules allow everything.
func allows(rules []pathRule, address *url.URL) bool {
	path := cmp.Or(address.EscapedPath(), "/")
	if address.RawQuery != "" {
		path += "?" + address.RawQuery
	}
	longest, allowed := 0, true
	for _, rule := range rules {
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
func parseRules(text []byte) []pathRule {
	var ownRules, commonRules []pathRule
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
		case "allow", "disallow":
			inRules = true
			rule := pathRule{strings.Clone(value), key == "allow"}
			if matchesUs && value != "" {
				ownRules = append(ownRules, rule)
			}
			if matchesAll && value != "" {
				commonRules = append(commonRules, rule)
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

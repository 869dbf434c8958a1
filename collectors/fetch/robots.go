package fetch

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// robotsAgeMax is the age at which a robots.txt is fetched again (RFC 9309, section 2.4).
const robotsAgeMax = 24 * time.Hour

// robotsRules are the rules in the robots.txt of one origin.
type robotsRules struct {
	rules
	fetchedAt time.Time
}

// checkRobots returns the pause between requests demanded by robots.txt (Crawl-delay), or an error if robots.txt
// disallows the address. Each origin (scheme, host and port) has its own robots.txt.
func (s *session) checkRobots(ctx context.Context, address *url.URL) (time.Duration, *fetchError) {
	if s.definition.IgnoreRobots {
		return 0, nil
	}
	base := origin(address)
	rules, known := s.client.robots.get(base.String())
	if age := s.client.config.Clock().Sub(rules.fetchedAt); !known || age >= robotsAgeMax || age < 0 {
		fetched, fetchErr := s.fetchRobots(ctx, base)
		switch {
		case fetchErr == nil:
			rules = fetched
			s.client.robots.put(base.String(), rules)
		case !known:
			return 0, fetchErr
		}
	}
	if !rules.allows(address) {
		return 0, newFetchError(source.Blocked, "%s: %s/robots.txt does not allow us (%q) to ask for it; if the institution does, "+
			"set ignoreRobots in the definition", address, base, productToken)
	}
	return rules.crawlDelay, nil
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
	hint := " (ignoreRobots in the definition skips it)"
	switch fetchErr.failure.Kind {
	case source.Network, source.Timeout, source.TLS:
		hint = "" // the page itself would fail too
	}
	fetchErr.failure.Detail = "fetch robots.txt before anything else" + hint + ": " + fetchErr.failure.Detail
	fetchErr.retryable = false // doWithRetries has retried it already
	return robotsRules{}, fetchErr
}

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

// robotsState is the robots.txt of one origin (scheme, host and port).
type robotsState struct {
	rules     rules
	fetchedAt time.Time // zero = not yet fetched
}

// checkRobots returns the pause between requests that robots.txt demands (Crawl-delay), or an error if robots.txt
// disallows the address. It locks the origin, so that concurrent fetches request its robots.txt only once.
func (s *session) checkRobots(ctx context.Context, address *url.URL) (time.Duration, *fetchError) {
	if s.definition.IgnoreRobots {
		return 0, nil
	}
	base := origin(address)
	lock, err := s.client.robots.lock(ctx, base.String())
	if err != nil {
		return 0, s.exchangeError(ctx, err, nil, "wait for the robots.txt of "+base.String())
	}
	defer s.client.robots.unlock(lock)
	state := &lock.value
	if age := s.client.config.Clock().Sub(state.fetchedAt); state.fetchedAt.IsZero() || age >= robotsAgeMax || age < 0 {
		if fetchErr := s.fetchRobots(ctx, base, state); fetchErr != nil {
			return 0, fetchErr
		}
	}
	if !state.rules.allows(address) {
		return 0, newFetchError(source.Blocked, "%s: %s/robots.txt does not allow us (%q) to ask for it; if the institution does, "+
			"set ignoreRobots in the definition", address, base, productToken)
	}
	return state.rules.crawlDelay, nil
}

// fetchRobots updates state. A missing robots.txt (4xx) allows everything. If robots.txt can't be fetched (5xx, no
// connection), the older copy stays in use. Without an older copy fetchRobots fails (RFC 9309, section 2.3.1).
func (s *session) fetchRobots(ctx context.Context, base *url.URL, state *robotsState) *fetchError {
	resp, fetchErr := s.doWithRetries(ctx, plannedRequest{
		method: http.MethodGet, url: base.JoinPath("robots.txt"), header: s.header("text/plain,*/*;q=0.5"),
		limit: robotsBytesMax, truncate: true, isRobots: true,
	})
	now := s.client.config.Clock()
	switch {
	case fetchErr == nil:
		*state = robotsState{rules: parseRules(resp.body), fetchedAt: now}
	case fetchErr.status >= 300 && fetchErr.status < 500: // missing, or a redirect that is not followed
		*state = robotsState{fetchedAt: now}
	case state.fetchedAt.IsZero():
		fetchErr.failure.Detail = "fetch robots.txt before anything else (ignoreRobots in the definition skips it): " + fetchErr.failure.Detail
		fetchErr.retryable = false // doWithRetries has retried it already
		return fetchErr
	}
	return nil
}

package fetch

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// robotsAgeMax is how long a robots.txt is used (RFC 9309, section 2.4).
const robotsAgeMax = 24 * time.Hour

// robotsState is the robots.txt of one origin.
type robotsState struct {
	rules     rules
	fetchedAt time.Time // zero = never fetched
}

// checkRobots returns an error if robots.txt disallows an address, otherwise its crawl delay. A missing robots.txt
// (4xx) allows everything; if it can't be fetched (5xx, no connection) everything is disallowed, as RFC 9309, section
// 2.3.1 demands, unless an older copy is known. The origin stays locked meanwhile, so that several fetches request it
// once.
func (s *session) checkRobots(ctx context.Context, address *url.URL) (time.Duration, *fetchError) {
	if s.definition.IgnoreRobots {
		return 0, nil
	}
	at := origin(address)
	lock, err := s.client.robots.lock(ctx, at.String())
	if err != nil {
		return 0, s.exchangeError(ctx, err, nil, "wait for the robots.txt of "+at.String())
	}
	defer s.client.robots.unlock(lock)
	known := &lock.value
	if age := s.client.config.Clock().Sub(known.fetchedAt); known.fetchedAt.IsZero() || age >= robotsAgeMax || age < 0 {
		if failed := s.fetchRobots(ctx, at, known); failed != nil {
			return 0, failed
		}
	}
	if !known.rules.allows(address) {
		return 0, newFetchError(source.Blocked, "%s: %s/robots.txt does not allow us (%q) to ask for it; if the institution does, "+
			"set ignoreRobots in the definition", address, at, productToken)
	}
	return known.rules.crawlDelay, nil
}

// fetchRobots fetches a robots.txt into known.
func (s *session) fetchRobots(ctx context.Context, at *url.URL, known *robotsState) *fetchError {
	a, failed := s.doWithRetries(ctx, plannedRequest{
		method: http.MethodGet, url: at.JoinPath("robots.txt"), header: s.header("text/plain,*/*;q=0.5"),
		limit: robotsBytesMax, truncate: true, robots: true,
	})
	now := s.client.config.Clock()
	switch {
	case failed == nil:
		*known = robotsState{rules: parseRules(a.body), fetchedAt: now}
	case failed.status >= 300 && failed.status < 500: // missing, or behind a redirect that is not followed
		*known = robotsState{fetchedAt: now}
	case known.fetchedAt.IsZero():
		failed.failure.Detail = "fetch robots.txt before anything else (ignoreRobots in the definition skips it): " + failed.failure.Detail
		failed.retryable = false // it was retried already
		return failed
	}
	return nil
}

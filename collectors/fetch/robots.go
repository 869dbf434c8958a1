package fetch

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// robotsAgeMax is how long a robots.txt is believed (RFC 9309, 2.4).
const robotsAgeMax = 24 * time.Hour

// robotsState is what is known of the robots.txt of one origin.
type robotsState struct {
	rules     rules
	fetchedAt time.Time // zero = never with success
}

// checkRobots asks whether robots.txt lets us make a call, and how long to pause after it. A robots.txt that is not there (4xx) allows
// everything; one that the server can't give (5xx, no connection) forbids everything, as RFC 9309, 2.3.1 wants it, unless an older
// one is known. The one who asks holds the origin's line, so that a day's question is asked once.
func (s *session) checkRobots(ctx context.Context, address *url.URL) (time.Duration, *fetchError) {
	if s.definition.IgnoreRobots {
		return 0, nil
	}
	at := origin(address)
	line, err := s.client.robots.lock(ctx, at.String())
	if err != nil {
		return 0, s.exchangeError(ctx, err, nil, "wait for the robots.txt of "+at.String())
	}
	defer s.client.robots.unlock(line)
	known := &line.value
	if age := s.client.config.Clock().Sub(known.fetchedAt); known.fetchedAt.IsZero() || age >= robotsAgeMax || age < 0 {
		if refused := s.fetchRobots(ctx, at, known); refused != nil {
			return 0, refused
		}
	}
	if !known.rules.allows(address) {
		return 0, newFetchError(source.Blocked, "%s: %s/robots.txt does not allow us (%q) to ask for it; if the institution does, "+
			"set ignoreRobots in the definition", address, at, productToken)
	}
	return known.rules.crawlDelay(), nil
}

// fetchRobots fetches a robots.txt into known.
func (s *session) fetchRobots(ctx context.Context, at *url.URL, known *robotsState) *fetchError {
	a, f := s.doWithRetries(ctx, plannedRequest{
		method: http.MethodGet, url: at.JoinPath("robots.txt"), header: s.header("text/plain,*/*;q=0.5"),
		limit: robotsBytesMax, truncate: true, robots: true,
	})
	now := s.client.config.Clock()
	switch {
	case f == nil:
		*known = robotsState{rules: parseRules(a.body), fetchedAt: now}
	case f.status >= 300 && f.status < 500: // not there; so is one behind a redirect that is not followed
		*known = robotsState{fetchedAt: now}
	case known.fetchedAt.IsZero():
		f.failure.Detail = "ask for robots.txt before anything else (ignoreRobots in the definition leaves it out): " + f.failure.Detail
		f.retryable = false // it was tried often enough
		return f
	}
	return nil
}

package fetch

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	triesMax      = 3
	backOffFirst  = 2 * time.Second // wait after the first try; doubled after each further try
	retryAfterMax = 24 * time.Hour  // longer waits are shortened to this, so that sums of durations do not overflow
)

// isRetryableStatus reports whether a request with this response status may succeed a few seconds later.
func isRetryableStatus(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	}
	return false
}

// jitter varies waits at random. If random is nil, waits stay as they are. A jitter is safe for concurrent use.
type jitter struct {
	mu     sync.Mutex
	random *rand.Rand
}

// backOff returns the wait after a try (from 1): 2 s, 4 s and so on, plus or minus a quarter, but at least retryAfter.
func (j *jitter) backOff(try int, retryAfter time.Duration) time.Duration {
	wait := backOffFirst << (try - 1)
	if j.random != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		wait = wait*3/4 + time.Duration(j.random.Int64N(int64(wait/2)+1))
	}
	return max(wait, retryAfter)
}

// readRetryAfter parses a Retry-After header: whole seconds, or a date (RFC 9110, section 10.2.3). It returns at most
// retryAfterMax, and 0 for an invalid header or a date in the past.
func readRetryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if text != "" && strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(retryAfterMax/time.Second) {
			return retryAfterMax
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil || !date.After(now) {
		return 0
	}
	return min(date.Sub(now), retryAfterMax)
}

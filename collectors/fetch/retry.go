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
	backOffFirst  = 2 * time.Second // doubled for each further try
	retryAfterMax = 24 * time.Hour  // longer waits are shortened to it, so that sums do not overflow
)

// isRetryableStatus reports whether the same request may succeed a few seconds later.
func isRetryableStatus(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	}
	return false
}

// jitter adds random time to waits; nil random = none. It is safe for concurrent use.
type jitter struct {
	mu     sync.Mutex
	random *rand.Rand
}

// backOff returns the wait after a try: 2 s, 4 s and so on, plus or minus a quarter, but at least retryAfter.
func (j *jitter) backOff(try int, retryAfter time.Duration) time.Duration {
	wait := backOffFirst << (try - 1)
	if j.random != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		wait = wait*3/4 + time.Duration(j.random.Int64N(int64(wait/2)+1))
	}
	return max(wait, retryAfter)
}

// readRetryAfter parses a Retry-After header: whole seconds, or a date (RFC 9110, section 10.2.3). It returns 0 for an
// invalid header, and at most retryAfterMax.
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

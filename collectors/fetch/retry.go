package fetch

import (
	"net/http"
	"strconv"
	"strings"
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

// readRetryAfter parses a Retry-After header: whole seconds, or a date (RFC 9110, section 10.2.3). It returns at most
// retryAfterMax, and 0 for an invalid header or a date in the past.
func readRetryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
		return time.Duration(min(max(seconds, 0), int(retryAfterMax/time.Second))) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), retryAfterMax)
}

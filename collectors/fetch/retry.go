package fetch

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	triesMax     = 3
	backOffFirst = 2 * time.Second // doubled for each further try
)

// retryAfterMax stands for every wait that is longer than any budget; it keeps the arithmetic from overflowing.
const retryAfterMax = 24 * time.Hour

// retryableStatuses lists the statuses that may be others in a few seconds.
func retryableStatuses() []int {
	return []int{
		http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout,
	}
}

func isRetryableStatus(status int) bool { return slices.Contains(retryableStatuses(), status) }

// jitter is a source of chance for several goroutines; nil random = none.
type jitter struct {
	mu     sync.Mutex
	random *rand.Rand
}

// spread moves a wait by up to a quarter, to either side.
func (c *jitter) spread(wait time.Duration) time.Duration {
	if c.random == nil || wait < 2 {
		return wait
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return wait*3/4 + time.Duration(c.random.Int64N(int64(wait/2)+1))
}

// backOff is the wait after a try: 2 s, 4 s and so on, spread by chance, but never less than the server asks for.
func (c *jitter) backOff(try int, asked time.Duration) time.Duration {
	return max(c.spread(backOffFirst<<(try-1)), asked)
}

// readRetryAfter reads the header of this name: whole seconds, or a date (RFC 9110, 10.2.3). What says nothing is 0, what asks for
// more than a day is a day.
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

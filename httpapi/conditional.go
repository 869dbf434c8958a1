package httpapi

import (
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

const (
	// maxAgeSeconds is the maximum max-age of a response, and staleSecondsMax the maximum stale-while-revalidate.
	maxAgeSeconds   = 60
	staleSecondsMax = 60
)

// cacheControl lists Cache-Control header lines, by the number of seconds during which the response cannot change.
type cacheControl [maxAgeSeconds + staleSecondsMax + 1][]byte

// currentSecond contains values common to all requests in the current second.
type currentSecond struct {
	rendered.Second
	date  []byte // in the format of the Date header
	today engine.Date
	// nextChange is the next time at which any response may change, in Unix nanoseconds: the next collection of rates
	// (engine.NextRefresh) or the next midnight, whichever is earlier.
	nextChange int64
}

// requestTime is the time at which a request is answered.
type requestTime struct {
	nanos int64 // Unix time in nanoseconds
	*currentSecond
}

func newCurrentSecond(now time.Time) *currentSecond {
	m := &currentSecond{Second: rendered.SecondOf(now), date: fasthttp.AppendHTTPDate(nil, now), today: engine.DateOf(now)}
	nextChange := engine.NextRefresh(now)
	if midnight := engine.NextMidnight(now); midnight.Before(nextChange) {
		nextChange = midnight
	}
	m.nextChange = nextChange.UnixNano()
	return m
}

// newCacheControl returns the header lines. shared means that responses are the same for all callers: a cache in front
// of the node may then store them, and may serve them while it revalidates (stale-while-revalidate).
func newCacheControl(shared bool) (lines cacheControl) {
	for seconds := range lines {
		value := "private, max-age=" + strconv.Itoa(min(seconds, maxAgeSeconds))
		if shared {
			value = fmt.Sprintf("public, max-age=%d, stale-while-revalidate=%d", min(seconds, maxAgeSeconds), max(0, seconds-maxAgeSeconds))
		}
		lines[seconds] = appendHeaderLine(nil, fasthttp.HeaderCacheControl, bytesOf(value))
	}
	return lines
}

// unchangedFor returns the number of seconds until changesAt or nextChange, whichever is earlier, rounded down. The
// result is an index of cacheControl. changesAt is the next expiry of a rate in the response, or zero.
func (now requestTime) unchangedFor(changesAt time.Time) int {
	nextChange := now.nextChange
	if !changesAt.IsZero() {
		nextChange = min(nextChange, changesAt.UnixNano())
	}
	return int(max(0, min(maxAgeSeconds+staleSecondsMax, (nextChange-now.nanos)/int64(time.Second))))
}

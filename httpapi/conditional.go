package httpapi

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// maxAgeSeconds is the maximum max-age of a response.
const maxAgeSeconds = 60

// currentSecond has the values that depend only on the current second. All requests in this second share it.
type currentSecond struct {
	rendered.Second
	today engine.Date
	// nextChange is the next hour at which rates are collected (engine.NextRefresh), or the next midnight if that is
	// earlier, in Unix nanoseconds. Any response may change then.
	nextChange int64
}

// requestTime is the time at which a request is answered.
type requestTime struct {
	nanos int64 // Unix time in nanoseconds
	*currentSecond
}

func (s *Server) requestTime() requestTime { return s.requestTimeAt(s.config.Clock()) }

func (s *Server) requestTimeAt(now time.Time) requestTime {
	m := s.currentSecond.Load()
	if m == nil || m.Unix != now.Unix() {
		m = newCurrentSecond(now)
		s.currentSecond.Store(m)
	}
	return requestTime{now.UnixNano(), m}
}

func newCurrentSecond(now time.Time) *currentSecond {
	m := &currentSecond{Second: rendered.SecondOf(now), today: engine.DateOf(now)}
	nextChange := engine.NextRefresh(now)
	if midnight := engine.NextMidnight(now); midnight.Before(nextChange) {
		nextChange = midnight
	}
	m.nextChange = nextChange.UnixNano()
	return m
}

// newCacheControlLines returns the Cache-Control header lines, indexed by max-age.
func newCacheControlLines() (lines [maxAgeSeconds + 1][]byte) {
	for seconds := range lines {
		lines[seconds] = appendHeaderLine(nil, fasthttp.HeaderCacheControl, strconv.AppendInt([]byte("private, max-age="), int64(seconds), 10))
	}
	return lines
}

// maxAge returns the max-age of a response in seconds, at most maxAgeSeconds. changesAt is the next expiry of a rate in
// the response, or zero. The result is rounded down, so that no cache uses the response after changesAt or after
// nextChange.
func (now requestTime) maxAge(changesAt time.Time) int {
	nextChange := now.nextChange
	if !changesAt.IsZero() {
		nextChange = min(nextChange, changesAt.UnixNano())
	}
	return int(max(0, min(maxAgeSeconds, (nextChange-now.nanos)/int64(time.Second))))
}

package httpapi

import (
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// maxAgeSeconds is the longest that an answer may be reused.
const maxAgeSeconds = 60

// timeText is an instant as meta shows it: 2006-01-02T15:04:05Z.
type timeText [len("2006-01-02T15:04:05Z")]byte

// currentSecond is what depends only on the present second, computed once for all requests.
type currentSecond struct {
	unix  int64
	text  timeText
	today engine.Date
	// nextChange is when answers may change without an event of any page: the next refresh slot or midnight, in
	// nanoseconds.
	nextChange int64
}

// requestTime is when a request is answered.
type requestTime struct {
	nanos int64 // nanoseconds
	*currentSecond
}

func (s *Server) requestTime() requestTime { return s.requestTimeAt(s.config.Clock()) }

func (s *Server) requestTimeAt(now time.Time) requestTime {
	m := s.currentSecond.Load()
	if m == nil || m.unix != now.Unix() {
		m = newCurrentSecond(now)
		s.currentSecond.Store(m)
	}
	return requestTime{now.UnixNano(), m}
}

func newCurrentSecond(now time.Time) *currentSecond {
	m := &currentSecond{unix: now.Unix(), today: engine.DateOf(now)}
	now.UTC().AppendFormat(m.text[:0], "2006-01-02T15:04:05Z")
	turns := engine.NextRefresh(now)
	if midnight := engine.NextMidnight(now); midnight.Before(turns) {
		turns = midnight
	}
	m.nextChange = turns.UnixNano()
	return m
}

// newCacheControlLines are the lines of Cache-Control for 0 to 60 seconds.
func newCacheControlLines() (lines [maxAgeSeconds + 1][]byte) {
	for seconds := range lines {
		lines[seconds] = appendHeaderLine(nil, fasthttp.HeaderCacheControl, strconv.AppendInt([]byte("private, max-age="), int64(seconds), 10))
	}
	return lines
}

// maxAge is for how many whole seconds an answer stays right: rounded down, so that no cache shows it after a rate has
// expired or a day has begun; 0 in the last second.
func (now requestTime) maxAge(changesAt time.Time) int {
	turns := now.nextChange
	if !changesAt.IsZero() {
		turns = min(turns, changesAt.UnixNano())
	}
	return int(max(0, min(maxAgeSeconds, (turns-now.nanos)/int64(time.Second))))
}

// bodyTag is the weak ETag of a body: its digest without generatedAt, so that it changes when the data did.
func bodyTag(d encodedBody) []byte {
	digest := sha256.New()
	if d.generatedAt == noGeneratedAt {
		digest.Write(d.body)
	} else {
		digest.Write(d.body[:d.generatedAt])
		digest.Write(d.body[d.generatedAt+len(timeText{}):])
	}
	return fields.AppendETag(nil, digest.Sum(nil))
}

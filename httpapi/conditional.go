package httpapi

import (
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// maxAgeSeconds is the longest that an answer may be reused (Q13).
const maxAgeSeconds = 60

// timeText is an instant as meta shows it: 2006-01-02T15:04:05Z.
type timeText [len("2006-01-02T15:04:05Z")]byte

// moment is what depends on the present second alone, made once a second for all requests.
type moment struct {
	second int64
	text   timeText
	today  engine.Date
	// turns is when answers may change without an event of any page: the next refresh slot or midnight, in nanoseconds.
	turns int64
}

// instant is when a request is answered.
type instant struct {
	at int64 // nanoseconds
	*moment
}

func (s *Server) instant() instant { return s.instantAt(s.config.Clock()) }

func (s *Server) instantAt(now time.Time) instant {
	m := s.present.Load()
	if m == nil || m.second != now.Unix() {
		m = newMoment(now)
		s.present.Store(m)
	}
	return instant{now.UnixNano(), m}
}

func newMoment(now time.Time) *moment {
	m := &moment{second: now.Unix(), today: engine.DateOf(now)}
	now.UTC().AppendFormat(m.text[:0], "2006-01-02T15:04:05Z")
	turns := engine.NextRefresh(now)
	if midnight := engine.NextMidnight(now); midnight.Before(turns) {
		turns = midnight
	}
	m.turns = turns.UnixNano()
	return m
}

// newMaxAges are the lines of Cache-Control for 0 to 60 seconds.
func newMaxAges() (lines [maxAgeSeconds + 1][]byte) {
	for seconds := range lines {
		lines[seconds] = appendLine(nil, fasthttp.HeaderCacheControl, strconv.AppendInt([]byte("private, max-age="), int64(seconds), 10))
	}
	return lines
}

// maxAge is for how many whole seconds an answer stays right by itself (Q13): rounded down, so that no cache shows it after
// a rate has expired or a day has begun; 0 in the last second.
func (now instant) maxAge(changesAt time.Time) int {
	turns := now.turns
	if !changesAt.IsZero() {
		turns = min(turns, changesAt.UnixNano())
	}
	return int(max(0, min(maxAgeSeconds, (turns-now.at)/int64(time.Second))))
}

// bodyTag is the weak ETag of a body: its digest without generatedAt (Q12), so that it changes when the data did.
func bodyTag(d draft) []byte {
	digest := sha256.New()
	if d.stamp == noStamp {
		digest.Write(d.body)
	} else {
		digest.Write(d.body[:d.stamp])
		digest.Write(d.body[d.stamp+len(timeText{}):])
	}
	return fields.AppendTag(nil, digest.Sum(nil))
}

package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/conn"
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

func (s *Server) instant() instant { return s.instantAt(s.clock()) }

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

// tagBytes is how much of the digest an ETag carries: enough that no two states ever share one.
const tagBytes = 16

// bodyTag is the weak ETag of a body: its digest without generatedAt (Q12), so that it changes when the data did.
func bodyTag(d draft) []byte {
	digest := sha256.New()
	if d.stamp == noStamp {
		digest.Write(d.body)
	} else {
		digest.Write(d.body[:d.stamp])
		digest.Write(d.body[d.stamp+len(timeText{}):])
	}
	return appendTag(nil, digest.Sum(nil))
}

// appendTag appends W/"…" for a digest.
func appendTag(dst, digest []byte) []byte {
	dst = append(dst, `W/"`...)
	dst = base64.RawURLEncoding.AppendEncode(dst, digest[:tagBytes])
	return append(dst, '"')
}

// noneMatches tells whether If-None-Match lets the answer be 304: one of its tags has the opaque part of etag (weak
// comparison), or it is "*". What is malformed matches nothing from there on.
func noneMatches(lines [][]byte, etag []byte) bool {
	if len(lines) == 1 && string(conn.TrimBlanks(lines[0])) == "*" {
		return true
	}
	opaque := bytes.TrimPrefix(etag, []byte("W/"))
	for _, line := range lines {
		if listsTag(line, opaque) {
			return true
		}
	}
	return false
}

// listsTag walks a comma-separated list of entity tags.
func listsTag(list, opaque []byte) bool {
	for {
		list = bytes.TrimLeft(list, " \t,")
		tag := bytes.TrimPrefix(list, []byte("W/"))
		end := tagEnd(tag)
		if end == 0 {
			return false
		}
		rest := conn.TrimBlanks(tag[end:])
		if len(rest) > 0 && rest[0] != ',' {
			return false
		}
		if bytes.Equal(tag[:end], opaque) {
			return true
		}
		list = rest
	}
}

// tagEnd is the length of the quoted tag that text begins with, 0 when it begins with none. The bytes of a tag are those of
// RFC 9110, section 8.8.3: anything visible but the quote.
func tagEnd(text []byte) int {
	if len(text) == 0 || text[0] != '"' {
		return 0
	}
	for i, c := range text[1:] {
		switch {
		case c == '"':
			return i + 2
		case c <= ' ' || c == 0x7f:
			return 0
		}
	}
	return 0
}

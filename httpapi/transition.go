package httpapi

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine/account"
)

// notice is the announced end of anonymous access as headers say it (K7), made once for each announcement.
type notice struct {
	of                  account.Transition
	deprecation, sunset []byte
	lines               []byte // all of it, for the head of a good answer
}

func newNotice(t account.Transition, link []byte) *notice {
	n := &notice{
		of: t,
		// RFC 9745: a structured field of type Date. RFC 8594: an HTTP date.
		deprecation: strconv.AppendInt([]byte("@"), t.AnnouncedAt.Unix(), 10),
		sunset:      fasthttp.AppendHTTPDate(nil, t.RequiredAt),
	}
	n.lines = appendLine(appendLine(nil, headerDeprecation, n.deprecation), headerSunset, n.sunset)
	if len(link) > 0 {
		n.lines = appendLine(n.lines, fasthttp.HeaderLink, link)
	}
	return n
}

// newNoticeLink is the value of Link beside it; "" without a page to link to.
func newNoticeLink(deprecation, sunset string) []byte {
	var link []byte
	for _, page := range [][2]string{{deprecation, "deprecation"}, {sunset, "sunset"}} {
		if page[0] == "" {
			continue
		}
		if len(link) > 0 {
			link = append(link, ", "...)
		}
		link = append(append(link, '<'), page[0]...)
		link = append(append(link, `>; rel="`...), page[1]...)
		link = append(link, '"')
	}
	return link
}

// notice is the announcement in force, from the moment it is made until the instant it names; nil without one.
func (s *Server) notice() *notice {
	if s.gate == nil {
		return nil
	}
	t := s.gate.Transition()
	if t.RequiredAt.IsZero() || !t.Pending(s.clock()) {
		return nil
	}
	n := s.noticed.Load()
	if n == nil || n.of != t {
		n = newNotice(t, s.noticeLink)
		s.noticed.Store(n)
	}
	return n
}

// announce puts the announcement on an answer, whatever it will be.
func (s *Server) announce(header *fasthttp.ResponseHeader) {
	n := s.notice()
	if n == nil {
		return
	}
	header.SetCanonical(s.names.deprecation, n.deprecation)
	header.SetCanonical(s.names.sunset, n.sunset)
	if len(s.noticeLink) > 0 {
		header.SetCanonical(s.names.link, s.noticeLink)
	}
}

// endNotice takes the announcement off a 401 that says that the instant has come: the two never go together.
func (s *Server) endNotice(header *fasthttp.ResponseHeader) {
	header.DelBytes(s.names.deprecation)
	header.DelBytes(s.names.sunset)
	header.DelBytes(s.names.link)
}

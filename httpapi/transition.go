package httpapi

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine/account"
)

// notice is the announced end of anonymous access as headers say it (K7), made once for each announcement.
type notice struct {
	of      account.Transition
	headers [][2]string // Deprecation, Sunset and, with a page to link to, Link
	lines   []byte      // all of it, for the head of a good answer
}

func (s *Server) newNotice(t account.Transition) *notice {
	n := &notice{of: t, headers: [][2]string{
		// RFC 9745: a structured field of type Date. RFC 8594: an HTTP date.
		{headerDeprecation, "@" + strconv.FormatInt(t.AnnouncedAt.Unix(), 10)},
		{headerSunset, string(fasthttp.AppendHTTPDate(nil, t.RequiredAt))},
	}}
	var links []string
	for _, page := range [][2]string{{s.config.DeprecationLink, "deprecation"}, {s.config.SunsetLink, "sunset"}} {
		if page[0] != "" {
			links = append(links, "<"+page[0]+`>; rel="`+page[1]+`"`)
		}
	}
	if len(links) > 0 {
		n.headers = append(n.headers, [2]string{fasthttp.HeaderLink, strings.Join(links, ", ")})
	}
	for _, header := range n.headers {
		n.lines = appendLine(n.lines, header[0], bytesOf(header[1]))
	}
	return n
}

// notice is the announcement in force, from the moment it is made until the instant it names; nil without one.
func (s *Server) notice() *notice {
	if s.config.Gate == nil {
		return nil
	}
	t := s.config.Gate.Transition()
	if t.RequiredAt.IsZero() || !t.Pending(s.config.Clock()) {
		return nil
	}
	n := s.noticed.Load()
	if n == nil || n.of != t {
		n = s.newNotice(t)
		s.noticed.Store(n)
	}
	return n
}

// announce puts the announcement on an answer, whatever it will be. A Link that is there already stays.
func (s *Server) announce(header *fasthttp.ResponseHeader) {
	n := s.notice()
	if n == nil {
		return
	}
	for _, line := range n.headers {
		header.AddBytesV(line[0], bytesOf(line[1]))
	}
}

// endNotice takes the announcement off a 401 that says that the instant has come: the two never go together.
func (s *Server) endNotice(header *fasthttp.ResponseHeader) {
	header.Del(headerDeprecation)
	header.Del(headerSunset)
	header.Del(fasthttp.HeaderLink)
}

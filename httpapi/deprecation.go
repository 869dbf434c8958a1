package httpapi

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine/account"
)

// deprecationNotice is the announced end of anonymous access as headers say it, made once for each announcement.
type deprecationNotice struct {
	keyPolicy account.KeyPolicy
	headers   [][2]string // Deprecation, Sunset and, with a page to link to, Link
	lines     []byte      // all of it, for the head of a good answer
}

func (s *Server) newDeprecationNotice(t account.KeyPolicy) *deprecationNotice {
	n := &deprecationNotice{keyPolicy: t, headers: [][2]string{
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
		n.lines = appendHeaderLine(n.lines, header[0], bytesOf(header[1]))
	}
	return n
}

// deprecationNotice is the announcement in force, from the moment it is made until the instant it names; nil
// without one.
func (s *Server) deprecationNotice() *deprecationNotice {
	if s.config.Admitter == nil {
		return nil
	}
	t := s.config.Admitter.KeyPolicy()
	if t.RequiredAt.IsZero() || !t.Pending(s.config.Clock()) {
		return nil
	}
	n := s.deprecation.Load()
	if n == nil || n.keyPolicy != t {
		n = s.newDeprecationNotice(t)
		s.deprecation.Store(n)
	}
	return n
}

// addDeprecation puts the announcement on an answer, whatever it will be. A Link that is there already stays.
func (s *Server) addDeprecation(header *fasthttp.ResponseHeader) {
	n := s.deprecationNotice()
	if n == nil {
		return
	}
	for _, line := range n.headers {
		header.AddBytesV(line[0], bytesOf(line[1]))
	}
}

// removeDeprecation takes the announcement off a 401 that says that the instant has come: the two never go together.
func (s *Server) removeDeprecation(header *fasthttp.ResponseHeader) {
	header.Del(headerDeprecation)
	header.Del(headerSunset)
	header.Del(fasthttp.HeaderLink)
}

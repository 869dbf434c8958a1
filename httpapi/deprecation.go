package httpapi

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine/account"
)

// deprecationNotice has the headers that announce the end of anonymous access, from which on each request needs an API
// key. The times are in keyPolicy.
type deprecationNotice struct {
	keyPolicy account.KeyPolicy
	headers   [][2]string // Deprecation, Sunset and, if there is a page to link to, Link
	lines     []byte      // the same headers as complete header lines, for appendHead
}

func (s *Server) newDeprecationNotice(policy account.KeyPolicy) *deprecationNotice {
	n := &deprecationNotice{keyPolicy: policy, headers: [][2]string{
		{headerDeprecation, "@" + strconv.FormatInt(policy.AnnouncedAt.Unix(), 10)}, // the type Date of RFC 9651, see RFC 9745
		{headerSunset, string(fasthttp.AppendHTTPDate(nil, policy.RequiredAt))},     // RFC 8594
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

// deprecationNotice returns the headers if the end of anonymous access is announced and has not come yet, else nil.
func (s *Server) deprecationNotice() *deprecationNotice {
	if s.config.Admitter == nil {
		return nil
	}
	policy := s.config.Admitter.KeyPolicy()
	if policy.RequiredAt.IsZero() || !policy.Pending(s.config.Clock()) {
		return nil
	}
	n := s.deprecation.Load()
	if n == nil || n.keyPolicy != policy {
		n = s.newDeprecationNotice(policy)
		s.deprecation.Store(n)
	}
	return n
}

// addDeprecation adds the headers of the deprecationNotice, if there is one. It keeps a Link that was set before.
func (s *Server) addDeprecation(header *fasthttp.ResponseHeader) {
	n := s.deprecationNotice()
	if n == nil {
		return
	}
	for _, line := range n.headers {
		header.AddBytesV(line[0], bytesOf(line[1]))
	}
}

// removeDeprecation removes the headers of addDeprecation from a 401. A 401 means that anonymous access has ended, so
// its end must not be announced any more. The headers can be there if it ended while the request was answered.
func (s *Server) removeDeprecation(header *fasthttp.ResponseHeader) {
	header.Del(headerDeprecation)
	header.Del(headerSunset)
	header.Del(fasthttp.HeaderLink)
}

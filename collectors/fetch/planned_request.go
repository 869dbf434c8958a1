package fetch

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/tasard/tasard/collectors/source"
)

// plannedRequest is one request as it will be sent, and what its response may be.
type plannedRequest struct {
	method     string
	url        *url.URL
	header     http.Header
	body       string
	limit      int  // bytes of the response
	truncate   bool // a longer response is cut instead of refused
	isDocument bool // the response is the document, not a step towards it
	robots     bool // the request is for a robots.txt, which needs no permission
}

// planRequest turns request i of the page into a plannedRequest. before is the response to the previous request.
func (s *session) planRequest(i int, before *rawResponse) (plannedRequest, *fetchError) {
	r := &s.page.Requests[i]
	isDocument := i == len(s.page.Requests)-1
	address, failed := s.address(r, before)
	if failed != nil {
		return plannedRequest{}, failed
	}
	method := s.page.Extract.Method
	c := plannedRequest{
		method: cmp.Or(r.Method, http.MethodGet), url: address, header: s.header(accept(method, isDocument)),
		limit: pageBytesMax, isDocument: isDocument,
	}
	if isDocument && method == source.XLSXRows {
		c.limit = workbookBytesMax
	}
	switch {
	case r.JSON != "":
		c.body = r.JSON
		c.header.Set("Content-Type", "application/json")
	case r.Form != nil:
		form := url.Values{}
		for name, value := range r.Form {
			form.Set(name, value)
		}
		c.body = form.Encode()
		c.header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range r.Headers {
		c.header.Set(name, value)
	}
	// A definition can't change the user agent, and the transport decodes only the encoding that it chose itself.
	c.header.Set("User-Agent", s.client.config.UserAgent)
	c.header.Del("Accept-Encoding")
	c.header.Del("Range")
	return c, nil
}

// redirected returns the request that follows a redirect (RFC 9110, section 15.4): the same after 307 and 308,
// otherwise a GET.
func (c plannedRequest) redirected(status int, to *url.URL) plannedRequest {
	c.url = to
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect && c.method != http.MethodGet {
		c.method, c.body = http.MethodGet, ""
		c.header = c.header.Clone()
		c.header.Del("Content-Type")
	}
	return c
}

// address returns where a request goes: as written, or as the page before names it.
func (s *session) address(r *source.Request, before *rawResponse) (*url.URL, *fetchError) {
	if r.AddressFrom == nil {
		address, err := url.Parse(r.URL)
		if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
			return nil, newFetchError(source.Internal, "%q is not a web address; correct the definition", r.URL).withCause(err)
		}
		return address, nil
	}
	if before == nil {
		return nil, newFetchError(source.Internal, "addressFrom in the first request: there is no page before it; give it a url")
	}
	page := &source.Document{URL: before.url.String(), ContentType: before.header.Get("Content-Type"), Body: before.body}
	text, err := source.AttributeOf(page, r.AddressFrom.Selector, r.AddressFrom.Attribute)
	if err != nil {
		return nil, newFetchError(source.Layout, "%v", err).withCause(err)
	}
	where := before.url.String() + ": " + r.AddressFrom.Attribute + " of " + r.AddressFrom.Selector
	address, err := before.url.Parse(text)
	if err != nil {
		return nil, newFetchError(source.Layout, "%s names %s, which is not an address", where, shorten(text)).withCause(err)
	}
	if why := refuseAddress(before.url, address); why != "" {
		return nil, newFetchError(source.Layout, "%s names %s, which is not requested: %s", where, shorten(text), why)
	}
	address.Fragment, address.RawFragment = "", ""
	return address, nil
}

// header returns the headers of every request, before those of its definition.
func (s *session) header(accepted string) http.Header {
	language := "es-DO,es;q=0.9"
	if s.definition.Language == "en" {
		language = "en,es;q=0.5"
	}
	return http.Header{
		"User-Agent":      {s.client.config.UserAgent},
		"Accept":          {accepted},
		"Accept-Language": {language},
	}
}

// accept returns the Accept header for the kind of document that the method reads; a step towards it is a page.
func accept(method source.Method, isDocument bool) string {
	const page = "text/html,application/xhtml+xml,*/*;q=0.5"
	switch {
	case !isDocument:
		return page
	case method == source.JSONFields, method == source.JSONRows:
		return "application/json"
	case method == source.XLSXRows:
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet,application/vnd.ms-excel,*/*;q=0.5"
	case method == source.TextRegex:
		return "text/plain,text/html,*/*;q=0.5"
	default:
		return page
	}
}

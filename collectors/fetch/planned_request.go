package fetch

import (
	"net/http"
	"net/url"

	"github.com/tasard/tasard/collectors/source"
)

// planRequest is the request number i of the page as a call. before is the answer to the one before it.
func (s *session) planRequest(i int, before *rawResponse) (plannedRequest, *fetchError) {
	r := &s.page.Requests[i]
	last := i == len(s.page.Requests)-1
	address, refused := s.address(r, before)
	if refused != nil {
		return plannedRequest{}, refused
	}
	c := plannedRequest{method: r.Method, url: address, header: s.header(accept(s.page.Extract.Method, last)), limit: pageBytesMax, isDocument: last}
	if c.method == "" {
		c.method = http.MethodGet
	}
	if last && s.page.Extract.Method == source.XLSXRows {
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
	// Who we are is not the definition's to say, and a packing that the transport did not choose it would not unpack.
	c.header.Set("User-Agent", s.client.config.UserAgent)
	c.header.Del("Accept-Encoding")
	c.header.Del("Range")
	return c, nil
}

// address is where a request goes: as written, or as the page before names it.
func (s *session) address(r *source.Request, before *rawResponse) (*url.URL, *fetchError) {
	if r.AddressFrom == nil {
		address, err := url.Parse(r.URL)
		if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
			return nil, newFetchError(source.Internal, "%q is no address of the web; mend it in the definition", r.URL).withCause(err)
		}
		return address, nil
	}
	if before == nil {
		return nil, newFetchError(source.Internal, "addressFrom in the first request; there is no page before it, give it a url")
	}
	page := &source.Document{URL: before.url.String(), ContentType: before.header.Get("Content-Type"), Body: before.body}
	text, err := source.AttributeOf(page, r.AddressFrom.Selector, r.AddressFrom.Attribute)
	if err != nil {
		return nil, newFetchError(source.Layout, "%v", err).withCause(err)
	}
	address, err := before.url.Parse(text)
	if err != nil {
		return nil, newFetchError(source.Layout, "%s: %s of %s names %s, which is no address", before.url, r.AddressFrom.Attribute,
			r.AddressFrom.Selector, shorten(text)).withCause(err)
	}
	if why := refuseAddress(before.url, address); why != "" {
		return nil, newFetchError(source.Layout, "%s: %s of %s names %s, which is not asked: %s", before.url, r.AddressFrom.Attribute,
			r.AddressFrom.Selector, shorten(text), why)
	}
	address.Fragment, address.RawFragment = "", ""
	return address, nil
}

// header is what every request says, besides its definition's own.
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

// accept is the kind of document that the extractor reads; a step towards it is a page.
func accept(method source.Method, last bool) string {
	const page = "text/html,application/xhtml+xml,*/*;q=0.5"
	switch {
	case !last:
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

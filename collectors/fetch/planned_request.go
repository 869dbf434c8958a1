package fetch

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/tasard/tasard/collectors/source"
)

// plannedRequest is a request ready to send, with the limits of its response.
type plannedRequest struct {
	method     string
	url        *url.URL
	header     http.Header
	body       string
	limit      int  // maximum bytes of the response body
	truncate   bool // true = a longer body is cut off at limit; false = it is an error
	isDocument bool // last request of the page: its response is the document
	isRobots   bool // request for robots.txt, exempt from robots.txt
	isToken    bool // the response contains a token, so secrets are not removed from it
}

// planRequest prepares s.page.Requests[i]. previous is the response to request i-1, or nil.
func (s *session) planRequest(i int, previous *rawResponse) (plannedRequest, *fetchError) {
	r := &s.page.Requests[i]
	isDocument := i == len(s.page.Requests)-1
	address, fetchErr := s.address(r, previous)
	if fetchErr != nil {
		return plannedRequest{}, fetchErr
	}
	method := s.page.Extract.Method
	req := plannedRequest{
		method: cmp.Or(r.Method, http.MethodGet), url: address, header: s.header(accept(method, isDocument)),
		limit: pageBytesMax, isDocument: isDocument,
	}
	if isDocument && method == source.XLSXRows {
		req.limit = workbookBytesMax
	}
	switch {
	case r.JSON != "":
		req.body = string(r.JSON)
		req.header.Set("Content-Type", "application/json")
	case r.Form != nil:
		form := url.Values{}
		for name, value := range r.Form {
			form.Set(name, value)
		}
		req.body = form.Encode()
		req.header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range r.Headers {
		req.header.Set(name, value)
	}
	return req, nil
}

// redirected returns the request after a redirect (RFC 9110, section 15.4). Status 307 and 308 keep the method, any
// other status changes it to GET.
func (req plannedRequest) redirected(status int, target *url.URL) plannedRequest {
	req.url = target
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect && req.method != http.MethodGet {
		req.method, req.body = http.MethodGet, ""
		req.header = req.header.Clone()
		req.header.Del("Content-Type")
	}
	return req
}

// address returns the address of a request: r.URL or, with r.AddressFrom, an attribute of an HTML element in the
// previous response.
func (s *session) address(r *source.Request, previous *rawResponse) (*url.URL, *fetchError) {
	if r.AddressFrom == nil {
		address, err := url.Parse(r.URL)
		if err != nil {
			return nil, newFetchError(source.Internal, "%q is not a web address; correct the definition", r.URL).withCause(err)
		}
		return address, nil
	}
	page := &source.Document{URL: previous.url.String(), ContentType: previous.header.Get("Content-Type"), Body: previous.body}
	text, err := source.AttributeOf(page, r.AddressFrom.Selector, r.AddressFrom.Attribute)
	if err != nil {
		return nil, newFetchError(source.Layout, "%v", err).withCause(err)
	}
	location := previous.url.String() + ": " + r.AddressFrom.Attribute + " of " + r.AddressFrom.Selector
	address, err := previous.url.Parse(text)
	if err != nil {
		return nil, newFetchError(source.Layout, "%s names %s, which is not an address", location, shorten(text)).withCause(err)
	}
	if reason := addressProblem(previous.url, address); reason != "" {
		return nil, newFetchError(source.Layout, "%s names %s, which is not requested: %s", location, shorten(text), reason)
	}
	address.Fragment, address.RawFragment = "", ""
	return address, nil
}

// header returns the headers of every request.
func (s *session) header(accept string) http.Header {
	return http.Header{"User-Agent": {s.client.config.UserAgent}, "Accept": {accept}, "Accept-Language": {"es-DO,es;q=0.9"}}
}

// accept returns the Accept header of a request. For the document of a page it depends on the extraction method;
// earlier requests ask for HTML.
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

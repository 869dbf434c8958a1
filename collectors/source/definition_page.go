package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/tasard/tasard/engine/jsonfile"
)

// reservedHeaders returns the HTTP headers that a definition of a source must not set, because package fetch sets them.
func reservedHeaders() []string {
	return []string{
		"Accept-Encoding", "Accept-Language", "Connection", "Content-Length", "Content-Type", "Cookie", "Expect", "From", "Host",
		"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Proxy-Authorization", "Range", "Te",
		"Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
	}
}

func (o *object) page(d *Definition, labels map[string]Target) Page {
	p := Page{
		Name: o.shortText("name"), InsteadOf: o.shortText("insteadOf"), Institution: o.id("institution"), Currency: o.currency("currency"),
		Fragment: o.Bool("fragment", false),
	}
	o.each("requests", requestsMax, func(request *object) {
		p.Requests = append(p.Requests, request.request(d, len(p.Requests) == 0))
	})
	o.checkRequests(&p)
	defaults := &pageDefaults{institution: d.Institution+p.Institution != "", currency: p.Currency != "", labels: labels}
	if !o.part("extract", func(part *object) { p.Extract = part.extract(defaults) }) {
		o.Errorf("extract is missing; say how the page is read")
	}
	return p
}

// checkRequests reports an error if a page has no requests, or if its requests are to different sites.
func (o *object) checkRequests(p *Page) {
	if len(p.Requests) == 0 {
		o.Errorf("requests is missing or empty; a page needs at least one")
	}
	site := ""
	for i := range p.Requests {
		address, ok := jsonfile.WebAddress(p.Requests[i].URL)
		if !ok {
			continue
		}
		switch requestSite := Site(address.Hostname()); {
		case site == "":
			site = requestSite
		case requestSite != site:
			o.Errorf("requests[%d] goes to %s, but the first one to %s; all requests of a page stay on one site", i, requestSite, site)
		}
	}
}

func (o *object) request(d *Definition, first bool) Request {
	r := Request{Method: jsonfile.Enum(o.Object, "method", "GET", []string{"GET", "POST"}), URL: o.address("url", d)}
	o.part("addressFrom", func(part *object) {
		r.AddressFrom = &AddressFrom{
			Selector:  part.Required("selector", "; say which element names the address", part.selector),
			Attribute: part.Required("attribute", "", part.attribute),
		}
	})
	switch {
	case (r.URL == "") == (r.AddressFrom == nil):
		o.Errorf("needs either url or addressFrom, and not both")
	case first && r.AddressFrom != nil:
		o.Errorf("addressFrom in the first request: there is no response before it; give it a url")
	}
	r.Headers = o.headers("headers")
	form := map[string]string{}
	if o.EachKey("form", entriesMax, func(part *jsonfile.Object, name string) {
		form[name] = part.Text(name, bodyBytesMax)
		part.CheckText("the name of a field", name, nameMax)
	}) {
		r.Form = form
	}
	r.JSON = o.body("json")
	switch {
	case r.Form != nil && r.JSON != "":
		o.Errorf("has form and json; a request has one body")
	case r.Method == "GET" && (r.Form != nil || r.JSON != ""):
		o.Errorf("has a body, but GET has none; use the method POST")
	case r.Method == "POST" && r.Form == nil && r.JSON == "":
		o.Errorf("has no body; write form or json, and {} for an empty form")
	}
	return r
}

// address reads the address of a request. It returns "" if the key is missing.
func (o *object) address(key string, d *Definition) string {
	text := o.URI(key, textMax)
	address, ok := jsonfile.WebAddress(text)
	if !ok {
		return text
	}
	switch {
	case address.Scheme == "http" && !d.PlainHTTP:
		o.Errorf("%s begins with http://, which is not protected; use https:// or set plainHttp for the source", key)
	case address.Fragment != "" || strings.HasSuffix(text, "#"):
		o.Errorf("%s has a # part, which is never sent; remove it", key)
	}
	return text
}

func (o *object) headers(key string) map[string]string {
	headers := map[string]string{}
	o.EachKey(key, entriesMax, func(part *jsonfile.Object, name string) {
		text := part.Text(name, textMax)
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		_, exists := headers[canonical]
		switch {
		case !isToken(name):
			part.Errorf("%.40q is not a header name; use letters, digits and hyphens", name)
		case exists:
			part.Errorf("the header %s occurs twice; keep one", canonical)
		case slices.Contains(reservedHeaders(), canonical):
			part.Errorf("the header %s is not for a definition to set; remove it", canonical)
		case slices.Contains(secretHeaders(), canonical):
			part.Errorf("the header %s has a secret, which others can read here; put it into a file and name that in \"secret\"", canonical)
		case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) || strings.TrimSpace(text) != text || text == "":
			part.Errorf("the header %s needs a value of ASCII characters without blanks around it", canonical)
		}
		headers[canonical] = text
	})
	if len(headers) == 0 {
		return nil
	}
	return headers
}

// userAgent reads a value of the header User-Agent.
func (o *object) userAgent(key string) string {
	text := o.Text(key, nameMax)
	if text != "" {
		if err := CheckUserAgent(text); err != nil {
			o.Errorf("%s %w", key, err)
		}
	}
	return text
}

// CheckUserAgent checks a value of the header User-Agent. It must name this program, so that a site can tell what reads
// it, and so that the rules of its robots.txt apply to the name that it sees.
func CheckUserAgent(text string) error {
	switch {
	case len(text) > nameMax || strings.TrimSpace(text) != text || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		return fmt.Errorf("is not a text of at most %d ASCII characters without blanks around it", nameMax)
	case !strings.Contains(strings.ToLower(text), "tasard"):
		return errors.New("does not name tasard; a site must be able to tell what reads it: Mozilla/5.0 (compatible; tasard; +ADDRESS)")
	}
	return nil
}

// proxy reads the address of a proxy.
func (o *object) proxy(key string) string {
	text := o.Text(key, textMax)
	address, err := url.Parse(text)
	switch {
	case text == "":
	case err != nil || !slices.Contains([]string{"http", "https", "socks5"}, address.Scheme) || address.Hostname() == "" ||
		strings.Trim(address.Path, "/")+address.RawQuery+address.Fragment != "":
		o.Errorf("%s is not the address of a proxy; write http://, https:// or socks5://, host and port", key)
	case address.User != nil:
		o.Errorf("%s has a password, which others could read here; use a proxy that needs none from this machine", key)
	}
	return text
}

func isToken(text string) bool {
	return text != "" && len(text) <= nameMax && strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// body reads a JSON value that is the body of a request. It returns compact JSON text, or "" if the key is missing.
func (o *object) body(key string) string {
	raw, given := o.Take(key)
	if !given {
		return ""
	}
	var body bytes.Buffer
	if err := json.Compact(&body, raw); err != nil || body.Len() > bodyBytesMax || body.String() == "null" {
		o.Errorf("%s is not a JSON value of at most %d bytes", key, bodyBytesMax)
		return ""
	}
	return body.String()
}

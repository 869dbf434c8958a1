package source

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// finish fills defaults, normalises headings and labels, and reports the problems of a definition that involve several
// keys. labels are those of the whole file.
func (p *problems) finish(d *Definition, labels Labels) {
	if d.Institution == "" && d.UpstreamSource == "" {
		p.addf("", "neither institution nor upstreamSource is given; name the institution of the source, or the aggregator")
	}
	shared := p.normalisedLabels("labels", labels)
	names := map[string]bool{}
	for i := range d.Pages {
		page, place := &d.Pages[i], fmt.Sprintf("pages[%d]", i)
		p.finishRequests(place, page)
		p.finishExtract(place+".extract", d, page, shared)
		isReplaced := func(other Page) bool { return other.Name == page.InsteadOf && other.InsteadOf == "" }
		if page.InsteadOf != "" && !slices.ContainsFunc(d.Pages[:i], isReplaced) {
			p.addf(place, "is read instead of %q; name an earlier page that has no insteadOf itself", page.InsteadOf)
		}
		if names[page.Name] || page.Name == "" && len(d.Pages) > 1 {
			p.addf(place, "has the name %q; with more than one page each needs its own", page.Name)
		}
		names[page.Name] = true
	}
	p.finishSecrets(d)
}

// reservedHeaders returns the HTTP headers that a definition must not set, because package fetch sets them.
func reservedHeaders() []string {
	return []string{
		"Accept-Encoding", "Accept-Language", "Connection", "Content-Length", "Content-Type", "Cookie", "Expect", "From", "Host",
		"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Proxy-Authorization", "Range", "Te",
		"Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
	}
}

// secretHeaders returns the usual headers of API keys. A definition must not set them, because it is not confidential.
func secretHeaders() []string {
	return []string{"Api-Key", "Apikey", "Authorization", "Ocp-Apim-Subscription-Key", "X-Access-Token", "X-Api-Key"}
}

func (p *problems) finishRequests(place string, page *Page) {
	site := ""
	for i := range page.Requests {
		r, place := &page.Requests[i], fmt.Sprintf("%s.requests[%d]", place, i)
		r.Method = cmp.Or(r.Method, "GET")
		switch {
		case (r.URL == "") == (r.AddressFrom == nil):
			p.addf(place, "needs either url or addressFrom, and not both")
		case i == 0 && r.AddressFrom != nil:
			p.addf(place, "addressFrom in the first request: there is no response before it; give it a url")
		case (r.Method == "POST") != (r.Form != nil || r.JSON != "") || r.Form != nil && r.JSON != "":
			p.addf(place, "a POST has one body, form or json ({} for an empty form), and a GET has none")
		}
		p.checkHeaders(place, r.Headers)
		if address, err := url.Parse(r.URL); err == nil && r.URL != "" {
			if site = cmp.Or(site, Site(address.Hostname())); site != Site(address.Hostname()) {
				p.addf(place, "goes to %s, but the first one to %s; all requests of a page stay on one site", Site(address.Hostname()), site)
			}
		}
	}
}

func (p *problems) checkHeaders(place string, headers map[string]string) {
	for name := range headers {
		switch header := textproto.CanonicalMIMEHeaderKey(name); {
		case slices.Contains(reservedHeaders(), header):
			p.addf(place, "the header %s is not for a definition to set; remove it", header)
		case slices.Contains(secretHeaders(), header):
			p.addf(place, `the header %s has a secret, which others can read here; put it into a file and name that in "secret"`, header)
		}
	}
}

// finishExtract does the work of finish for Page.Extract. shared are the labels for all pages of the file.
func (p *problems) finishExtract(place string, d *Definition, page *Page, shared Labels) {
	e := &page.Extract
	page.defaultsOf(d)
	hasInstitution := d.Institution+page.Institution != ""
	for i, f := range e.Fields {
		place := fmt.Sprintf("%s.fields[%d]", place, i)
		switch {
		case !hasInstitution:
			p.addf(place, "has no institution; name one for the source or the page")
		case f.Currency+page.Currency == "":
			p.addf(place, "has no currency; name it here or for the page")
		}
	}
	if r := e.Rows; r != nil {
		place += ".rows"
		switch {
		case r.Buy == nil && r.Sell == nil && r.Value == nil:
			p.addf(place, "has neither buy nor sell nor value; say where the values are")
		case r.Value != nil && (r.Buy != nil || r.Sell != nil):
			p.addf(place, "has value beside buy or sell; a row has either one value or its sides")
		}
		r.Labels = p.normalisedLabels(place+".labels", r.Labels)
		for i := range r.Ignore {
			r.Ignore[i] = values.NormaliseLabel(r.Ignore[i])
		}
		p.mergeLabels(place, r.Labels, shared, r.Ignore, hasInstitution, page.Currency != "", r.Value != nil)
	}
	if e.Text != nil {
		p.finishText(place+".text", d, page, shared)
	}
}

// defaultsOf sets the default of Rows.Min, and normalises headings.
func (page *Page) defaultsOf(d *Definition) {
	e := &page.Extract
	if e.Sheet != nil {
		for _, heading := range []*string{&e.Sheet.Name, &e.Sheet.Year, &e.Sheet.Month, &e.Sheet.Day} {
			*heading = values.NormaliseLabel(*heading)
		}
		for i := range e.Fields {
			e.Fields[i].At = values.NormaliseLabel(e.Fields[i].At)
		}
	}
	if r := e.Rows; r != nil {
		r.Min = max(r.Min, 1)
		for _, locator := range []*Locator{&r.Label, r.Buy, r.Sell, r.Value} {
			if locator != nil {
				locator.Column = values.NormaliseLabel(locator.Column)
			}
		}
		if r.Date != nil {
			r.Date.Column = values.NormaliseLabel(r.Date.Column)
		}
	}
}

// normalisedLabels returns the labels in normalised form.
func (p *problems) normalisedLabels(place string, labels Labels) Labels {
	normalised, names := Labels{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name == byWords {
			normalised[name] = Target{}
			continue
		}
		label := values.NormaliseLabel(name)
		if first, exists := names[label]; exists {
			p.addf(place+"."+name, "is the same label as %q without spaces, accents and capitals; keep one", first)
		}
		names[label], normalised[label] = name, labels[name]
	}
	return normalised
}

// mergeLabels adds the labels of the whole file to the labels of a page, without those that the page itself defines or
// ignores. It reports labels if it is not clear which quote they stand for on this page.
func (p *problems) mergeLabels(place string, labels, shared Labels, ignored []string, hasInstitution, hasCurrency, withSide bool) {
	for label, target := range shared {
		if _, known := labels[label]; !known && !slices.Contains(ignored, label) {
			labels[label] = target
		}
	}
	if len(labels) == 0 {
		p.addf(place, "labels is missing or empty, here and for the whole file; say what each label means")
	}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		t, problem := labels[label], ""
		switch {
		case t.Institution == "" && !hasInstitution:
			problem = "names no institution; name it here, for the page or for the source"
		case t.Currency == "" && !hasCurrency && label != byWords:
			problem = "names no currency; name it here or for the page"
		case withSide && t.Side == "" && label != byWords:
			problem = "names no side, but the rows have one value each; say which side it is"
		default:
			continue
		}
		p.addf(place, "the label %.40q, here or of the file, %s", label, problem)
	}
}

// finishText does the work of finish for Extract.Text. It checks the groups of the pattern.
func (p *problems) finishText(place string, d *Definition, page *Page, shared Labels) {
	t, hasInstitution := page.Extract.Text, d.Institution+page.Institution != ""
	names := regexp.MustCompile(t.Pattern).SubexpNames()
	if !slices.Contains(names, "buy") && !slices.Contains(names, "sell") {
		p.addf(place, "pattern has neither the group buy nor the group sell; write (?P<buy>...)")
	}
	if slices.Contains(names, "label") {
		t.Labels = p.normalisedLabels(place+".labels", t.Labels)
		p.mergeLabels(place, t.Labels, shared, nil, hasInstitution, page.Currency != "", false)
		return
	}
	if !hasInstitution || page.Currency == "" {
		p.addf(place, "pattern has no group label, so the source or the page must name the institution, and the page the currency")
	}
}

// finishSecrets reports a problem if a secret could be sent to another site. Package fetch sends none without TLS.
func (p *problems) finishSecrets(d *Definition) {
	var headers []*string
	if d.Secret != nil {
		headers = append(headers, &d.Secret.Header)
	}
	if d.OAuth2 != nil {
		headers = append(headers, &d.OAuth2.ClientIDHeader)
	}
	if d.Secret != nil && d.OAuth2 != nil {
		p.addf("", "has secret and oauth2; keep one")
	}
	for _, header := range headers {
		if *header = textproto.CanonicalMIMEHeaderKey(*header); slices.Contains(reservedHeaders(), *header) {
			p.addf("", "the header %s can't be set; use the header that the site documents, such as X-Api-Key", *header)
		}
	}
	for i := range d.Pages {
		for j := range d.Pages[i].Requests {
			if d.Pages[i].Requests[j].AddressFrom != nil && headers != nil {
				p.addf(fmt.Sprintf("pages[%d].requests[%d]", i, j), "takes its address from a page, which could send the secret elsewhere; write its url")
			}
		}
	}
}

// MayCarrySecret reports whether a request may carry a secret: with TLS, or directly to an address of this machine.
func MayCarrySecret(address *url.URL, proxy string) bool {
	ip, err := netip.ParseAddr(address.Hostname())
	return address.Scheme == "https" || proxy == "" && err == nil && ip.IsLoopback()
}

// Labels maps the normalised labels of rows to quotes. If a definition file has the text "currencies" instead of an
// object, labels are looked up in a dictionary of currency words (values.LabelWords).
type Labels map[string]Target

// byWords is a key that marks Labels with the dictionary. It can't be in a file, where control characters are refused.
const byWords = "\x00currencies"

// UnmarshalJSON reads an object of labels, or "currencies".
func (l *Labels) UnmarshalJSON(data []byte) error {
	if string(data) == `"currencies"` {
		*l = Labels{byWords: {}}
		return nil
	}
	return json.Unmarshal(data, (*map[string]Target)(l))
}

// find returns the quote that a normalised label stands for. withSide means that a row has only one price. A label of
// the dictionary must then name the side, and otherwise must not.
func (l Labels) find(label string, withSide bool) (Target, bool) {
	target, known := l[label]
	if _, words := l[byWords]; known || !words {
		return target, known
	}
	currency, channel, side, ok := values.LabelWords(label)
	return Target{Currency: currency, Channel: engine.Channel(channel), Side: Side(side)}, ok && (side != "") == withSide
}

// targetsOfWords returns all quotes that labels of the dictionary can stand for.
func targetsOfWords() (targets []Target) {
	for _, currency := range values.LabelCurrencies() {
		for _, channel := range []engine.Channel{"", engine.Branch, engine.Digital, engine.Cash, engine.Transfer} {
			targets = append(targets, Target{Currency: currency, Channel: channel})
		}
	}
	return targets
}

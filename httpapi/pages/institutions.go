package pages

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/tasard/tasard/engine"
)

func (p *Pages) showInstitutions(w http.ResponseWriter, r *Request) {
	p.frame.WriteCached(w, r, "", func() (*Document, error) {
		items, err := p.institutions()
		if err != nil {
			return nil, err
		}
		l := p.texts.In(r)
		body := Group{H1(l.T("institutions.heading")), P(Class("lead"), l.T("institutions.lead"))}
		for _, kind := range engine.InstitutionTypes() {
			var list Group
			for _, item := range items {
				if item.Type == kind {
					list = append(list, institutionEntry(item, l))
				}
			}
			if len(list) > 0 {
				body = append(body, Section(H2(l.T("types."+string(kind))), Ul(Class("list"), list)))
			}
		}
		return &Document{
			Body: body, Section: "/institutions", Title: l.Str("institutions.title"), Description: l.Str("institutions.description"),
		}, nil
	})
}

func institutionEntry(item engine.InstitutionItem, l *Localizer) Node {
	rates := l.Str("institutions.none")
	if len(item.Currencies) > 0 {
		rates = strings.Join(item.Currencies, ", ") + " · " + l.Count("institutions.current", item.CurrentQuoteCount)
	}
	return Li(A(l.Href("/institutions/"+item.ID), Text(item.Name)), Text(" "), Span(Class("meta"), Text(rates)))
}

// institutions returns all active institutions, from all result pages.
func (p *Pages) institutions() ([]engine.InstitutionItem, error) {
	return engine.AllItems(queryPagesMax, func(page engine.PageRequest) (*engine.Page[engine.InstitutionItem], error) {
		return p.service.Institutions(engine.InstitutionsQuery{PageRequest: page})
	})
}

func (p *Pages) showInstitution(w http.ResponseWriter, r *Request) {
	id := r.PathValue("id")
	institution, ok := p.catalogue.Institution(id)
	if !ok || !institution.Active {
		p.frame.NotFound(w, r)
		return
	}
	values := r.URL.Query()
	values.Del("amount")
	values.Del("operation")
	q := parsePageQuery(values, p.catalogue)
	p.frame.WriteCached(w, r, q.cacheKey(), func() (*Document, error) {
		detail, err := p.service.Institution(institution.ID)
		if err != nil {
			return nil, err
		}
		l := p.texts.In(r)
		history, err := p.institutionHistory(detail, q, values.Get(parameterCurrency) != "", l)
		if err != nil {
			return nil, err
		}
		feed := "/feeds/" + url.PathEscape(institution.ID) + ".atom"
		doc := &Document{
			Body:    Group{institutionHead(detail, l), institutionRates(detail.Items, l), P(Class("fine"), l.feedLink(feed)), history},
			Section: "/institutions", Title: institution.Name, Description: l.Str("institution.description", institution.Name),
			Query: q.values().Encode(), Feed: feed,
		}
		doc.setBadRequest(q)
		return doc, nil
	})
}

func institutionHead(detail *engine.InstitutionDetail, l *Localizer) Node {
	return Group{
		P(Class("crumb"), A(l.Href("/institutions"), l.T("nav.institutions"))),
		H1(Text(detail.Name)),
		P(Class("lead"), Span(Class("tag"), l.T("type."+string(detail.Type))), If(detail.Website != "", Text(" ")),
			External(detail.Website, detail.Website)),
		If(detail.Description != "", P(If(l.Language != Spanish, Lang("es")), Text(detail.Description))),
		If(detail.Contact != "", P(l.T("institution.contact"), Text(" "+detail.Contact))),
	}
}

func institutionRates(rates []*engine.Rate, l *Localizer) Node {
	heading := H2(l.T("institution.rates"))
	if len(rates) == 0 {
		return Section(ID("rates"), heading, P(Class("empty"), l.T("institution.none")))
	}
	// The column headings explain the sides for visitors only if there is an offer; reference rates are not offers.
	offers := slices.ContainsFunc(rates, func(rate *engine.Rate) bool { return rate.Kind == engine.Commercial })
	column := func(key string) Node {
		return Th(Scope("col"), Class("number"), l.T(key), If(offers, Small(l.T(key+".who"))))
	}
	decimals := 2 // the same in all rows, to align the decimal points; the central bank publishes four
	for _, rate := range rates {
		for _, side := range []engine.Decimal{rate.Buy, rate.Sell} {
			_, fraction, _ := strings.Cut(sideOrDash(side), ".")
			decimals = max(decimals, min(len(fraction), 4))
		}
	}
	effective := rates[0].EffectiveDate
	if slices.ContainsFunc(rates, func(rate *engine.Rate) bool { return rate.EffectiveDate != effective }) {
		effective = 0 // the dates differ, so each row shows its own
	}
	return Section(ID("rates"), heading, l.asOf(rates, If(effective != 0, Group{Text(" · "), l.T("provenance.effective", l.Date(effective))})), Table(Class("rates"), Caption(Class("quiet"), l.T("institution.rates")),
		THead(Tr(l.column("form.currency"), column("rates.compra"), column("rates.venta"))),
		TBody(Map(rates, func(rate *engine.Rate) Node {
			summary := Group{Span(Class("who"), Text(rate.Currency)), l.channel(rate), If(rate.Kind == engine.Reference, l.tag("tag", "kind.reference")),
				If(rate.Stale, l.tag("tag bad", "rates.stale")),
				If(effective == 0 && !rate.EffectiveDate.IsZero(), Span(Class("meta"), l.T("rate.effective", l.Date(rate.EffectiveDate))))}
			return Tr(Td(Class("name"), l.provenanceBehind(rate, summary, nil)),
				Td(Class("number"), Text(padded(rate.Buy, decimals))), Td(Class("number"), Text(padded(rate.Sell, decimals))))
		}))))
}

// institutionHistory returns the history of the rate in the query. Without a currency in the query, it uses the default
// currency or, if the institution has no rate of that, the institution's first currency.
func (p *Pages) institutionHistory(detail *engine.InstitutionDetail, q pageQuery, hasCurrency bool, l *Localizer) (Node, error) {
	currencies := codesOf(detail.Items)
	if !hasCurrency && len(currencies) > 0 && !slices.Contains(currencies, q.Currency) {
		q.Currency = currencies[0]
	}
	channels, kind := channelsOf(detail.Items, q.Currency)
	if q.Channel == "" && len(channels) > 0 {
		q.Channel = channels[0]
	}
	history, err := p.quoteHistory(l, engine.Filter{Institution: detail.ID, Currency: q.Currency, Channel: q.Channel, Kind: kind}, q.Days)
	if err != nil && !isUnavailable(err) { // without data, the page has no history
		return nil, err
	}
	path := l.Path("/institutions/" + url.PathEscape(detail.ID))
	return Section(ID("history"), H2(l.T("history.heading", q.Currency)), l.problems(q, "currency", "channel", "days"),
		If(len(currencies) > 1, pills(path, q, l.Str("form.currency"), currencies, q.Currency,
			func(q *pageQuery, code string) { q.Currency, q.Channel = code, "" },
			func(code string) string { return code })),
		If(len(channels) > 1, pills(path, q, l.Str("form.channel"), channels, q.Channel,
			func(q *pageQuery, channel engine.Channel) { q.Channel = channel },
			func(channel engine.Channel) string { return l.Str("channel." + string(channel)) })),
		periodLinks(path, q, l), history), nil
}

func isUnavailable(err error) bool { return engine.CodeOf(err) == engine.CodeDataUnavailable }

// codesOf returns the distinct currency codes of rates, in order of appearance.
func codesOf(rates []*engine.Rate) []string {
	var codes []string
	for _, rate := range rates {
		if !slices.Contains(codes, rate.Currency) {
			codes = append(codes, rate.Currency)
		}
	}
	return codes
}

// channelsOf returns the distinct channels of a currency's rates. kind is Reference if one of them is a reference rate.
func channelsOf(rates []*engine.Rate, currency string) (channels []engine.Channel, kind engine.Kind) {
	kind = engine.Commercial
	for _, rate := range rates {
		if rate.Currency != currency {
			continue
		}
		if !slices.Contains(channels, rate.Channel) {
			channels = append(channels, rate.Channel)
		}
		if rate.Kind == engine.Reference {
			kind = engine.Reference
		}
	}
	return channels, kind
}

package pages

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tasard/tasard/engine"
)

// institutionGroup is the institutions of one type.
type institutionGroup struct {
	Type  engine.InstitutionType
	Items []engine.InstitutionItem
}

func (p *Pages) showInstitutions(w http.ResponseWriter, r *Request) {
	p.frame.WriteKept(w, r, "", func() (*Document, time.Time, error) {
		items, err := p.institutions()
		if err != nil {
			return nil, time.Time{}, err
		}
		var groups []institutionGroup
		for _, kind := range engine.InstitutionTypes() {
			group := institutionGroup{Type: kind}
			for _, item := range items {
				if item.Type == kind {
					group.Items = append(group.Items, item)
				}
			}
			if len(group.Items) > 0 {
				groups = append(groups, group)
			}
		}
		doc := &Document{Body: p.institutionsBody, Data: groups, Section: "/institutions"}
		if doc.Title, err = p.text(r.Language, "institutions.title"); err == nil {
			doc.Description, err = p.text(r.Language, "institutions.description")
		}
		return doc, time.Time{}, err
	})
}

// institutions are all active ones, page by page.
func (p *Pages) institutions() ([]engine.InstitutionItem, error) {
	q := engine.InstitutionsQuery{Cut: engine.Cut{Limit: engine.LimitMax}}
	var items []engine.InstitutionItem
	for range historyPagesMax {
		page, err := p.service.Institutions(q)
		if err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if page.Next == engine.NoNext {
			break
		}
		q.Cursor = page.Next
	}
	return items, nil
}

// institutionPage is what the template institution.html gets.
type institutionPage struct {
	*engine.InstitutionDetail
	question
	Now        time.Time
	Currencies []choice // with history to show
	Channels   []choice
	Kind       engine.Kind
	Windows    []choice
	History    template.HTML
}

func (p *Pages) showInstitution(w http.ResponseWriter, r *Request) {
	id := r.PathValue("id")
	known, ok := p.catalogue.Institution(id)
	if !ok || !known.Active {
		p.frame.NotFound(w, r)
		return
	}
	values := r.URL.Query()
	values.Del("amount")
	values.Del("operation")
	q := readQuestion(values, p.catalogue)
	p.frame.WriteKept(w, r, q.key(), func() (*Document, time.Time, error) {
		detail, err := p.service.Institution(known.ID)
		if err != nil {
			return nil, time.Time{}, err
		}
		page := &institutionPage{InstitutionDetail: detail, question: q, Now: r.Now}
		if err := p.fillHistory(page, r); err != nil {
			return nil, time.Time{}, err
		}
		doc := &Document{Body: p.institutionBody, Data: page, Section: "/institutions", Title: known.Name, Query: q.query().Encode()}
		if len(q.Problems) > 0 {
			doc.Status, doc.NoIndex = http.StatusBadRequest, true
		}
		doc.Description, err = p.text(r.Language, "institution.description", known.Name)
		return doc, time.Time{}, err
	})
}

// fillHistory chooses the quote whose history is shown: what was asked for, or else the first that the institution publishes.
func (p *Pages) fillHistory(page *institutionPage, r *Request) error {
	asked := r.URL.Query().Get(parameterCurrency) != ""
	if published := codesOf(page.Rates); !asked && len(published) > 0 && !slices.Contains(published, page.Currency) {
		page.Currency = published[0]
	}
	channels := channelsOf(page)
	if page.Channel == "" && len(channels) > 0 {
		page.Channel = channels[0]
	}
	page.link(r.Language.Path("/institutions/"+url.PathEscape(page.ID)), channels)
	filter := engine.Filter{Institution: page.ID, Currency: page.Currency, Channel: page.Channel, Kind: page.Kind}
	history, err := p.quoteHistory(r, filter, page.Days)
	if isUnavailable(err) { // before the first rate there is no history, and the institution is known all the same
		return nil
	}
	page.History = history
	return err
}

// isUnavailable tells that nothing is loaded yet.
func isUnavailable(err error) bool {
	var named *engine.Error
	return errors.As(err, &named) && named.Code == engine.CodeDataUnavailable
}

// codesOf are the currencies of an institution's rates, in their order.
func codesOf(rates []*engine.Rate) []string {
	var codes []string
	for _, rate := range rates {
		if !slices.Contains(codes, rate.Currency) {
			codes = append(codes, rate.Currency)
		}
	}
	return codes
}

// channelsOf are the channels of the page's currency, and which kind of rate it is.
func channelsOf(page *institutionPage) []engine.Channel {
	var channels []engine.Channel
	page.Kind = engine.Commercial
	for _, rate := range page.Rates {
		if rate.Currency != page.Currency {
			continue
		}
		if !slices.Contains(channels, rate.Channel) {
			channels = append(channels, rate.Channel)
		}
		if rate.Kind == engine.Reference {
			page.Kind = engine.Reference
		}
	}
	return channels
}

// link makes the links that change what the chart shows.
func (page *institutionPage) link(at string, channels []engine.Channel) {
	q := page.question
	page.Currencies = choices(at, q, codesOf(page.Rates), q.Currency,
		func(q *question, code string) { q.Currency, q.Channel = code, "" },
		func(c *choice, code string) { c.Text = code })
	page.Channels = choices(at, q, channels, q.Channel,
		func(q *question, channel engine.Channel) { q.Channel = channel },
		func(c *choice, channel engine.Channel) { c.Key = "channel." + string(channel) })
	page.Windows = spans(at, q)
}

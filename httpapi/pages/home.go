package pages

import (
	"html/template"
	"net/http"
	"time"

	"github.com/tasard/tasard/engine"
)

// glanceCurrencies are those whose best rates are shown at once.
func glanceCurrencies() []string { return []string{"USD", "EUR"} }

// homePage is what the template home.html gets.
type homePage struct {
	question
	Now        time.Time
	Best       *row   // of the question, nil when nothing is ranked
	Foreign    string // the amount with commas, "" when there is none
	Glance     []glance
	Currencies []choice
	Channels   []choice
	Venta      string // paths that sort by what the caller pays and gets
	Compra     string
	Rows       []row
	Total      int // of all ranked, where Rows shows the first
	Unranked   []row
	Reference  []*engine.Rate
	Windows    []choice
	History    template.HTML
}

// glance is the best of one currency for both operations.
type glance struct {
	Currency   string
	ToBuy      *engine.Rate // nil when nobody sells
	ToSell     *engine.Rate
	Reference  *engine.Rate
	Path       string
	IsCurrency bool // the page's own
}

func (p *Pages) showHome(w http.ResponseWriter, r *Request) {
	q := readQuestion(r.URL.Query(), p.catalogue)
	p.frame.WriteKept(w, r, q.key(), func() (*Document, time.Time, error) {
		page, err := p.home(q, r)
		if err != nil {
			return nil, time.Time{}, err
		}
		doc := &Document{
			Body: p.homeBody, Data: page, Section: "/", Query: q.query().Encode(), Scripts: []string{"convert.js"},
			NoIndex: q.Typed != "",
		}
		if len(q.Problems) > 0 {
			doc.Status, doc.NoIndex = http.StatusBadRequest, true
		}
		if doc.Title, err = p.text(r.Language, "home.title", p.nameOf(r.Language, q.Currency)); err == nil {
			doc.Description, err = p.text(r.Language, "home.description")
		}
		return doc, time.Time{}, err
	})
}

// home asks for everything on the page. It is asked within the same second, so what it shows may differ by one publication.
func (p *Pages) home(q question, r *Request) (*homePage, error) {
	root := r.Language.Path("/")
	page := &homePage{question: q, Now: r.Now, Foreign: grouped(q.Amount.String())}
	var err error
	if page.Glance, err = p.glances(q, root); err != nil {
		return nil, err
	}
	if err := p.rank(page, r); err != nil {
		return nil, err
	}
	if page.History, err = p.marketHistory(r, q); err != nil {
		return nil, err
	}
	page.Windows = spans(root, q)
	page.Currencies = p.currencyOptions(r.Language, q.Currency)
	page.Channels = channelOptions(q.Channel)
	page.Venta, page.Compra = sortedBy(q, root, engine.Buy), sortedBy(q, root, engine.Sell)
	return page, nil
}

// sortedBy is the page for an operation.
func sortedBy(q question, root string, operation engine.Operation) string {
	q.Operation = operation
	return pathWith(root, q.query()) + "#rates"
}

// rank fills in the table: who is ranked, who is not, and the reference.
func (p *Pages) rank(page *homePage, r *Request) error {
	filter := engine.Filter{Currency: page.Currency, Channel: page.Channel, Kind: engine.Commercial}
	cut := engine.Cut{Limit: engine.LimitMax}
	ranking, err := p.service.Ranking(engine.RankingQuery{Filter: filter, Cut: cut, Operation: page.Operation})
	if err != nil {
		return err
	}
	write := p.scribe(r)
	page.Total = ranking.Total
	if page.Rows, err = write.ranking(ranking.Items, page.question); err != nil {
		return err
	}
	if len(page.Rows) > 0 {
		page.Best = &page.Rows[0]
	}
	all, err := p.service.Rates(engine.RatesQuery{Filter: filter, Cut: cut})
	if err != nil {
		return err
	}
	if page.Unranked, err = write.unranked(all.Items, page.Operation); err != nil {
		return err
	}
	reference, err := p.service.Rates(engine.RatesQuery{Filter: engine.Filter{Currency: page.Currency, Kind: engine.Reference}, Cut: cut})
	if err != nil {
		return err
	}
	page.Reference = reference.Items
	return nil
}

// glances are the best rates of the currencies that most people need.
func (p *Pages) glances(q question, root string) ([]glance, error) {
	var all []glance
	for _, currency := range glanceCurrencies() {
		g := glance{Currency: currency, IsCurrency: currency == q.Currency, Path: pathWith(root, question{Currency: currency, Operation: q.Operation, Days: q.Days}.query())}
		var err error
		if g.ToBuy, err = p.best(currency, engine.Buy); err != nil {
			return nil, err
		}
		if g.ToSell, err = p.best(currency, engine.Sell); err != nil {
			return nil, err
		}
		reference, err := p.service.Rates(engine.RatesQuery{Filter: engine.Filter{Currency: currency, Kind: engine.Reference}, Cut: engine.Cut{Limit: 1}})
		if err != nil {
			return nil, err
		}
		if len(reference.Items) > 0 {
			g.Reference = reference.Items[0]
		}
		all = append(all, g)
	}
	return all, nil
}

// best is nil when nobody is ranked.
func (p *Pages) best(currency string, operation engine.Operation) (*engine.Rate, error) {
	ranking, err := p.service.Ranking(engine.RankingQuery{
		Filter: engine.Filter{Currency: currency}, Cut: engine.Cut{Limit: 1}, Operation: operation,
	})
	if err != nil || len(ranking.Items) == 0 {
		return nil, err
	}
	return ranking.Items[0], nil
}

// currencyOptions are all currencies of the catalogue, by code.
func (p *Pages) currencyOptions(language Language, current string) []choice {
	var options []choice
	for _, currency := range p.catalogue.Currencies() {
		options = append(options, choice{
			Value: currency.Code, Text: currency.Code + " · " + p.nameOf(language, currency.Code), Current: currency.Code == current,
		})
	}
	return options
}

func channelOptions(current engine.Channel) []choice {
	options := []choice{{Key: "channel.all", Current: current == ""}}
	for _, channel := range engine.Channels() {
		options = append(options, choice{Value: string(channel), Key: "channel." + string(channel), Current: channel == current})
	}
	return options
}

// nameOf is a currency's name: the catalogue's is Spanish, an English one is among the texts of the currencies that the program knows.
func (p *Pages) nameOf(language Language, code string) string {
	if language == English {
		if name, err := p.text(English, "currency."+code); err == nil {
			return name
		}
	}
	if currency, ok := p.catalogue.Currency(code); ok {
		return currency.Name
	}
	return code
}

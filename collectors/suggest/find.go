package suggest

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// Limits of a document. The time grows with the square of the number of prices.
const (
	documentMax = 256 << 10
	pricesMax   = 400
	decimalsMax = 4
)

// Finding is one price that was found in a document.
type Finding struct {
	Currency string
	Channel  engine.Channel // "" = that of the definition
	Side     source.Side
	Price    string   // with the digits of the document
	Place    string   // a description of the element, or the path of the value
	Reasons  []string // one for each word that decided
	at       *spot
}

// spot is a place in a document that has a price.
type spot struct {
	text  string // as in the document
	price string // its digits, as values.ParsePrice gives them
	units int64  // its value, as engine.Decimal counts

	node       *html.Node // HTML: the element
	attribute  string     // HTML: the attribute that has the price
	textNode   *html.Node // HTML: the text that has the price, and where its digits are if spaces are collapsed
	start, end int
	inScript   bool   // HTML: the price is in a script
	script     string // HTML: the text before it in the script, unless it is a JSON value
	isHidden   bool   // HTML: an attribute hides the element
	isJSON     bool   // the element is a JSON value, perhaps of a script

	words     map[values.Topic]values.Word
	isNoise   bool // words beside it say that it is not a rate of today
	isUnclear bool // words contradict each other
	reasons   []string
}

func (s *spot) take(where string, w values.Word) {
	s.words[w.Topic] = w
	s.reasons = append(s.reasons, fmt.Sprintf("%s by %s %q", w.Topic, where, w.Text))
}

// lacks reports whether no word of a topic is known.
func (s *spot) lacks(about values.Topic) bool { return s.words[about].Meaning == "" }

func (s *spot) isNamed() bool { return !s.lacks(values.AboutSide) && !s.lacks(values.AboutCurrency) }

// quoteSide is one side of a quote, or with the side "" the quote.
type quoteSide struct{ currency, channel, side string }

func (s *spot) key() quoteSide {
	return quoteSide{s.words[values.AboutCurrency].Meaning, s.words[values.AboutChannel].Meaning, s.words[values.AboutSide].Meaning}
}

func (k quoteSide) other() quoteSide {
	k.side = map[string]string{"buy": "sell", "sell": "buy"}[k.side]
	return k
}

func (k quoteSide) quote() quoteSide { return quoteSide{k.currency, k.channel, ""} }

// finder finds the prices of one document.
type finder struct {
	known     map[quoteSide]int64 // without channels
	ofChannel map[quoteSide]bool  // currencies and channels of the definition that are not its usual channel
	spots     []*spot
	notes     []string // why prices were refused
	page      *page
	json      *html.Node // the whole document; nil for HTML
}

// Describe names the prices of a document in one line, and the place of the first of them: USD 58.10/59.60 at td. It
// returns "" if there is none.
func Describe(doc *source.Document) string {
	found, err := (&finder{}).find(doc)
	if err != nil || len(found) == 0 {
		return ""
	}
	prices, quotes := map[quoteSide]string{}, []quoteSide{}
	for _, f := range found {
		key := f.at.key()
		if prices[key] = f.Price; !slices.Contains(quotes, key.quote()) {
			quotes = append(quotes, key.quote())
		}
	}
	texts := make([]string, len(quotes))
	for i, q := range quotes {
		texts[i] = q.currency + " " + prices[quoteSide{q.currency, q.channel, "buy"}] + "/" + prices[quoteSide{q.currency, q.channel, "sell"}]
	}
	return strings.Join(texts, ", ") + " at " + found[0].Place
}

func (f *finder) find(doc *source.Document) ([]Finding, error) {
	if len(doc.Body) > documentMax {
		return nil, fmt.Errorf("the document has %d bytes; at most %d are searched", len(doc.Body), documentMax)
	}
	if challenge := doc.Challenge(); challenge != "" {
		return nil, fmt.Errorf("the page is the challenge of a bot protection (%s)", challenge)
	}
	text := strings.ToValidUTF8(strings.TrimPrefix(string(doc.Body), "\uFEFF"), "\uFFFD")
	read := f.readHTML
	switch start := strings.TrimLeft(text, " \t\r\n"); {
	case strings.HasPrefix(start, "PK\x03\x04"):
		return nil, fmt.Errorf("a workbook is not searched")
	case strings.HasPrefix(start, "{"), strings.HasPrefix(start, "["):
		read = f.readJSON
	}
	if err := read(text); err != nil {
		return nil, err
	}
	f.useKnown()
	return f.decide(), nil
}

func (f *finder) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// Prices of currencies in pesos that are looked at. In a page, a price below pageLowest must be near a known one.
const (
	peso       int64 = 100_000_000 // units of engine.Decimal
	lowest           = 2 * peso
	highest          = 200 * peso
	pageLowest       = 20 * peso
)

// unitsOf returns the value of a text that is a price, otherwise 0.
func unitsOf(text string) int64 {
	price, err := values.ParsePrice(text, values.AnyMark, decimalsMax)
	if err != nil {
		return 0
	}
	decimal, _ := engine.ReadDecimal(price)
	return decimal.Units()
}

// add adds a place whose text is a plausible price, and returns nil if it is not one.
func (f *finder) add(s *spot, isNumber bool) (*spot, error) {
	parse := values.ParsePrice
	if isNumber {
		parse = values.ParseNumber
	}
	var err error
	if s.price, err = parse(s.text, values.AnyMark, decimalsMax); err != nil {
		return nil, nil
	}
	s.units = unitsOf(s.price)
	if s.units < lowest || s.units > highest || !f.page.isJSON && s.units < pageLowest && !f.isKnown(s.units) {
		return nil, nil
	}
	if len(f.spots) == pricesMax {
		return nil, fmt.Errorf("the document has more than %d prices; a page of rates has fewer", pricesMax)
	}
	s.words = map[values.Topic]values.Word{}
	f.spots = append(f.spots, s)
	return s, nil
}

// decide returns the prices whose currency and side are clear, and which nothing contradicts.
func (f *finder) decide() (found []Finding) {
	prices, order := f.byKey()
	refused := map[quoteSide]bool{}
	for _, key := range order {
		if problem := f.contradiction(key, prices); problem != "" {
			refused[key.quote()] = true
			f.note("%s: %s", key.currency, problem)
		}
	}
	for _, key := range order {
		if s := prices[key][0]; !refused[key.quote()] {
			found = append(found, Finding{key.currency, engine.Channel(key.channel), source.Side(key.side), s.price, s.place(), s.reasons, s})
		}
	}
	return found
}

func (s *spot) place() string {
	switch {
	case s.isJSON && s.inScript:
		return "script"
	case s.isJSON:
		path, _ := pathOf(s.node, nil)
		return path
	case s.attribute != "":
		return describe(s.node) + ", attribute " + s.attribute
	}
	return describe(s.node)
}

// byKey groups the places whose currency and side are known. Hidden ones count only if there is no other.
func (f *finder) byKey() (prices map[quoteSide][]*spot, order []quoteSide) {
	prices = map[quoteSide][]*spot{}
	f.dropOnlyChannel()
	for _, s := range f.spots {
		key := s.key()
		if !s.isNamed() {
			continue
		}
		if foreign := values.ForeignCurrency(s.text, key.currency); foreign != "" {
			f.note("%s is in %s", s.text, foreign)
			continue
		}
		if prices[key] == nil {
			order = append(order, key)
		}
		prices[key] = append(prices[key], s)
	}
	for key, spots := range prices {
		if visible := slices.DeleteFunc(slices.Clone(spots), func(s *spot) bool { return s.isHidden }); len(visible) > 0 {
			spots = visible
		}
		prices[key] = f.nearKnown(key, spots)
	}
	return prices, order
}

// dropOnlyChannel forgets the channel of currencies that have prices of one channel only: it is that of the definition,
// unless this names others for the currency, of which only one has prices today.
func (f *finder) dropOnlyChannel() {
	channels, seen := map[string]int{}, map[quoteSide]bool{}
	for _, s := range f.spots {
		if quote := s.key().quote(); s.isNamed() && !seen[quote] {
			seen[quote] = true
			channels[quote.currency]++
		}
	}
	for _, s := range f.spots {
		if quote := s.key().quote(); channels[quote.currency] == 1 && !f.ofChannel[quote] {
			delete(s.words, values.AboutChannel)
		}
	}
}

// A buy price is at most spreadPermille below the sell price of its quote.
const spreadPermille = 250

// contradiction says what is wrong with the prices of a side, or "".
func (f *finder) contradiction(key quoteSide, prices map[quoteSide][]*spot) string {
	first := prices[key][0]
	for _, s := range prices[key][1:] {
		if s.units != first.units {
			return fmt.Sprintf("%s is %s and %s", key.side, first.price, s.price)
		}
	}
	band, isBounded := engine.DefaultCatalogue().Currency(key.currency)
	if isBounded && (first.units < band.Lowest.Units() || !band.Highest.IsNull() && first.units > band.Highest.Units()) {
		return fmt.Sprintf("%s %s is outside the band", key.side, first.price)
	}
	if f.isFarFromKnown(key, first.units) {
		return fmt.Sprintf("%s %s is not near the known price", key.side, first.price)
	}
	if others := prices[key.other()]; key.side == "buy" && others != nil {
		switch sell := others[0]; {
		case first.units >= sell.units:
			return fmt.Sprintf("buy %s is not below sell %s", first.price, sell.price)
		case permilleBetween(sell.units, first.units) > spreadPermille:
			return fmt.Sprintf("buy %s is far below sell %s", first.price, sell.price)
		}
	}
	return ""
}

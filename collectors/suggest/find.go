package suggest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/tasard/tasard/collectors/markup"
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

// Known is a price that is known of a currency, for example the last one of the source, or one of the market.
type Known struct {
	Currency  string
	Buy, Sell engine.Decimal // null = unknown
}

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
	value cents

	node      *html.Node // HTML: the element
	attribute string     // HTML: the attribute that has the price
	inScript  bool       // HTML: the price is in a script
	script    string     // HTML: the text before it in the script, unless path says where it is in a JSON value
	hidden    bool       // HTML: an attribute hides the element
	path      path       // JSON, also of a script

	side, currency, channel values.Word
	isNoise                 bool // words beside it say that it is not a rate of today
	isUnclear               bool // words contradict each other
	reasons                 []string
}

func (s *spot) because(about values.Topic, where string, w values.Word) {
	s.reasons = append(s.reasons, fmt.Sprintf("%s by %s %q", about, where, w.Text))
}

// finder finds the prices of one document.
type finder struct {
	known     []Known
	ofChannel map[quoteSide]bool // currencies and channels of the definition that are not its usual channel
	spots     []*spot
	notes     []string // why prices were refused
	page      *page    // nil for JSON
	json      *value   // nil for HTML
}

// Find finds the rates in a document. Notes say what was refused, and why.
func Find(doc *source.Document, known []Known) (found []Finding, notes []string) {
	f := &finder{known: known}
	found, err := f.find(doc)
	if err != nil {
		return nil, append(f.notes, err.Error())
	}
	return found, f.notes
}

// Describe names the prices in one line, and the place of the first of them: USD 58.10/59.60 at td.
func Describe(found []Finding) string {
	var quotes []quoteSide
	for _, f := range found {
		if quote := f.at.key().quote(); !slices.Contains(quotes, quote) {
			quotes = append(quotes, quote)
		}
	}
	texts := make([]string, len(quotes))
	for i, quote := range quotes {
		prices := map[source.Side]string{}
		for _, f := range found {
			if f.at.key().quote() == quote {
				prices[f.Side] = f.Price
			}
		}
		texts[i] = quote.currency + " " + prices[source.BuySide] + "/" + prices[source.SellSide]
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
	var err error
	switch start := bytes.TrimLeft([]byte(text), " \t\r\n"); {
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return nil, fmt.Errorf("a workbook is not searched")
	case bytes.HasPrefix(start, []byte("{")), bytes.HasPrefix(start, []byte("[")):
		err = f.readJSON(text)
	default:
		err = f.readHTML(text)
	}
	if err != nil {
		return nil, err
	}
	f.useKnown()
	return f.decide(), nil
}

func (f *finder) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// Prices of currencies in values.Pesos that are looked at. In a page, a price below pageLowest must be near a known one.
const (
	lowest     cents = 2 * pesoCents
	highest    cents = 200 * pesoCents
	pageLowest cents = 20 * pesoCents
)

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
	var ok bool
	if s.value, ok = centsOf(s.price); !ok || s.value < lowest || s.value > highest || s.node != nil && s.value < pageLowest && !f.isKnown(s.value) {
		return nil, nil
	}
	if len(f.spots) == pricesMax {
		return nil, fmt.Errorf("the document has more than %d prices; a page of rates has fewer", pricesMax)
	}
	f.spots = append(f.spots, s)
	return s, nil
}

// quoteSide is one side of a quote, or with the side "" the quote.
type quoteSide struct{ currency, channel, side string }

func (s *spot) key() quoteSide {
	return quoteSide{s.currency.Meaning, s.channel.Meaning, s.side.Meaning}
}

func (k quoteSide) other() quoteSide {
	k.side = map[string]string{"buy": "sell", "sell": "buy"}[k.side]
	return k
}

func (k quoteSide) quote() quoteSide { return quoteSide{k.currency, k.channel, ""} }

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
		if refused[key.quote()] {
			continue
		}
		s := prices[key][0]
		found = append(found, Finding{
			Currency: key.currency, Channel: engine.Channel(key.channel), Side: source.Side(key.side), Price: s.price, Place: s.place(), Reasons: s.reasons, at: s,
		})
	}
	return found
}

func (s *spot) place() string {
	switch {
	case s.node == nil:
		return s.path.String()
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
		if s.side.Meaning == "" || s.currency.Meaning == "" {
			continue
		}
		if foreign := values.ForeignCurrency(s.text, s.currency.Meaning); foreign != "" {
			f.note("%s is in %s", s.text, foreign)
			continue
		}
		key := s.key()
		if prices[key] == nil {
			order = append(order, key)
		}
		prices[key] = append(prices[key], s)
	}
	for key, spots := range prices {
		if visible := slices.DeleteFunc(slices.Clone(spots), func(s *spot) bool { return s.hidden }); len(visible) > 0 {
			spots = visible
		}
		prices[key] = f.nearKnown(key, spots)
	}
	return prices, order
}

// dropOnlyChannel forgets the channel of currencies that have prices of one channel only: it is that of the definition,
// unless this names others for the currency, of which only one has prices today.
func (f *finder) dropOnlyChannel() {
	channels := map[string]map[string]bool{}
	for _, s := range f.spots {
		if s.side.Meaning != "" && s.currency.Meaning != "" {
			if channels[s.currency.Meaning] == nil {
				channels[s.currency.Meaning] = map[string]bool{}
			}
			channels[s.currency.Meaning][s.channel.Meaning] = true
		}
	}
	for _, s := range f.spots {
		if len(channels[s.currency.Meaning]) == 1 && !f.ofChannel[quoteSide{currency: s.currency.Meaning, channel: s.channel.Meaning}] {
			s.channel = values.Word{}
		}
	}
}

// A buy price is at most spreadPermille below the sell price of its quote.
const spreadPermille = 250

// contradiction says what is wrong with the prices of a side, or "".
func (f *finder) contradiction(key quoteSide, prices map[quoteSide][]*spot) string {
	first := prices[key][0]
	for _, s := range prices[key][1:] {
		if s.value != first.value {
			return fmt.Sprintf("%s is %s and %s", key.side, first.price, s.price)
		}
	}
	if band, known := engine.DefaultCatalogue().Currency(key.currency); known {
		low, _ := centsOf(band.Lowest.String())
		high, isBounded := centsOf(band.Highest.String())
		if first.value < low || isBounded && first.value > high {
			return fmt.Sprintf("%s %s is outside the band", key.side, first.price)
		}
	}
	if problem := f.farFromKnown(key, first); problem != "" {
		return problem
	}
	if others := prices[key.other()]; key.side == "buy" && others != nil {
		switch sell := others[0]; {
		case first.value >= sell.value:
			return fmt.Sprintf("buy %s is not below sell %s", first.price, sell.price)
		case permilleBetween(sell.value, first.value) > spreadPermille:
			return fmt.Sprintf("buy %s is far below sell %s", first.price, sell.price)
		}
	}
	return ""
}

// describe names an element in words that an operator can search the page for: its name, id and classes.
func describe(node *html.Node) string {
	text := node.Data
	if id, _ := markup.Text(node, "id"); id != "" && len(id) <= nameMax {
		text += "#" + strings.Join(strings.Fields(id), "#")
	}
	class, _ := markup.Text(node, "class")
	for name := range strings.FieldsSeq(class[:min(len(class), nameMax)]) {
		text += "." + name
	}
	return text
}

package suggest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// Limits of a document.
const (
	documentMax = 256 << 10
	pricesMax   = 400
	workMax     = 1_000_000 // limit of the work that spend counts; a long list of rates needs a fifth
	decimalsMax = 4
)

// Finding is one price that was found in a document.
type Finding struct {
	Currency string
	Side     source.Side
	Price    string   // with the digits of the document
	Place    string   // a description of the element, or the path of the value
	Reasons  []string // one for each word that decided
	at       *spot
}

// spot is a place in a document with a price.
type spot struct {
	text      string     // as in the document
	price     string     // result of values.ParsePrice
	units     int64      // value of price (engine.Decimal.Units)
	node      *html.Node // the element, or the JSON value
	attribute string     // the attribute with the price; "" = the price is in the text
	inScript  bool       // the node is a JSON value of a script

	quoteSide
	isNoise bool // words beside the price say that it is another rate
	reasons []string
}

// take sets the side or the currency by a word, and adds the reason. For the zero Word it returns false.
func (s *spot) take(where string, node *html.Node, w values.Word) bool {
	if w.Meaning == "" {
		return false
	}
	if node != nil {
		where += describe(node)
	}
	if w.Topic == values.AboutSide {
		s.side = w.Meaning
	} else {
		s.currency = w.Meaning
	}
	s.reasons = append(s.reasons, fmt.Sprintf("%s by %s %q", w.Topic, where, w.Text))
	return true
}

// quoteSide is one side of a quote. "" = unknown.
type quoteSide struct{ currency, side string }

func (k quoteSide) isNamed() bool { return k.currency != "" && k.side != "" }

// finder finds the prices of one document. It turns the document into a stream of words and prices, in their order.
type finder struct {
	known    map[quoteSide]int64 // known prices, in units
	channel  string              // of the definition
	document *html.Node          // parsed HTML page, or nil
	json     *html.Node          // parsed JSON document, or nil
	spots    []*spot
	stream   []token
	spans    map[*html.Node][2]int         // start and end of each node in the stream
	tables   map[*html.Node][][]*html.Node // cells by row and column
	notes    []string                      // why prices were refused
	problem  error                         // why the whole document is refused
	work     int                           // see workMax
}

// token is a word or a price.
type token struct {
	word values.Word
	spot *spot // nil for a word
}

func newFinder(known []engine.Observation) *finder {
	f := &finder{known: map[quoteSide]int64{}, spans: map[*html.Node][2]int{}, tables: map[*html.Node][][]*html.Node{}}
	for _, o := range known {
		for side, price := range map[string]string{"buy": o.Buy, "sell": o.Sell} {
			if key := (quoteSide{o.Currency, side}); f.known[key] == 0 && price != "" {
				f.known[key] = unitsOf(price)
			}
		}
	}
	return f
}

// Describe names the prices of the first currency of a document, and their place: USD 58.10/59.60 at td. It returns ""
// if there is none.
func Describe(doc *source.Document) string {
	found, err := newFinder(nil).find(doc)
	if err != nil || len(found) == 0 {
		return ""
	}
	prices, first := map[source.Side]string{}, found[0]
	for _, f := range found {
		if f.Currency == first.Currency {
			prices[f.Side] = f.Price
		}
	}
	return fmt.Sprintf("%s %s/%s at %s", first.Currency, prices[source.BuySide], prices[source.SellSide], first.Place)
}

func (f *finder) find(doc *source.Document) ([]Finding, error) {
	if len(doc.Body) > documentMax {
		return nil, fmt.Errorf("the document has %d bytes; at most %d are searched", len(doc.Body), documentMax)
	}
	if challenge := doc.Challenge(); challenge != "" {
		return nil, fmt.Errorf("the page is the challenge of a bot protection (%s)", challenge)
	}
	text := strings.ToValidUTF8(strings.TrimPrefix(string(doc.Body), "\uFEFF"), "\uFFFD")
	switch start := strings.TrimLeft(text, " \t\r\n"); {
	case strings.HasPrefix(start, "PK\x03\x04"):
		return nil, errors.New("a workbook is not searched")
	case json.Valid([]byte(text)):
		f.json = f.addJSON(text)
	case strings.HasPrefix(start, "{"), strings.HasPrefix(start, "["):
		return nil, errors.New("the JSON can't be read")
	default:
		f.readHTML(text)
	}
	if slices.ContainsFunc(f.spots, func(s *spot) bool { return s.isNoise }) {
		f.note("prices beside words for another rate, another day or a channel are not searched")
	}
	f.useKnown()
	if f.problem != nil {
		return nil, f.problem
	}
	return f.decide(), nil
}

// spend counts work: words, prices, cells, and bytes of names. Beyond workMax it refuses the document and returns true.
func (f *finder) spend(work int) (tooMuch bool) {
	if f.work += work; f.work > workMax && f.problem == nil {
		f.problem = errors.New("the document has too many words and prices in each other to be searched")
	}
	return f.work > workMax
}

func (f *finder) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// Range of the prices that are considered, in units of engine.Decimal: from 20 to 200 pesos.
const (
	lowest  int64 = 2_000_000_000
	highest int64 = 20_000_000_000
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

// add adds a spot if the text is a price from lowest to highest. Otherwise it returns nil.
func (f *finder) add(node *html.Node, attribute, text string) *spot {
	parse := values.ParsePrice
	if node.Data == numberValue {
		parse = values.ParseNumber
	}
	price, err := parse(text, values.AnyMark, decimalsMax)
	units := unitsOf(price)
	switch {
	case err != nil || units < lowest || units > highest:
		return nil
	case len(f.spots) == pricesMax:
		f.problem = fmt.Errorf("the document has more than %d prices; a page of rates has fewer", pricesMax)
		return nil
	}
	s := &spot{text: text, price: price, units: units, node: node, attribute: attribute}
	f.spots = append(f.spots, s)
	return s
}

// decide returns the prices with a clear currency and side, except those of currencies with a contradiction.
func (f *finder) decide() (found []Finding) {
	prices, order := map[quoteSide][]*spot{}, []quoteSide{}
	for _, s := range f.spots {
		key := s.quoteSide
		if s.isNamed() && prices[key] == nil {
			order = append(order, key)
		}
		prices[key] = append(prices[key], s)
	}
	refused := map[string]bool{}
	for _, key := range order {
		if problem := f.contradiction(key, prices); problem != "" {
			refused[key.currency] = true
			f.note("%s: %s", key.currency, problem)
		}
	}
	for _, key := range order {
		if s := prices[key][0]; !refused[key.currency] {
			found = append(found, Finding{key.currency, source.Side(key.side), s.price, describe(s.node), s.reasons, s})
		}
	}
	return found
}

// spreadPermille is the maximum distance of a buy price below the sell price, in thousandths of the buy price.
const spreadPermille = 250

// contradiction returns a text about what is wrong with the prices of a side, or "".
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
	otherKey := quoteSide{key.currency, map[string]string{"buy": "sell", "sell": "buy"}[key.side]}
	known, other := f.known[key], f.known[otherKey]
	distance := permilleBetween(first.units, known) // very large without a known price
	isOther := prices[otherKey] == nil && other > 0 && distance > 2*permilleBetween(first.units, other)
	if known > 0 && distance > nearPermille || isOther { // a single side may be the other one
		return fmt.Sprintf("%s %s is not near the known price", key.side, first.price)
	}
	sells := prices[quoteSide{key.currency, "sell"}]
	if key.side == "buy" && sells != nil && (first.units >= sells[0].units || permilleBetween(sells[0].units, first.units) > spreadPermille) {
		return fmt.Sprintf("buy %s is not below sell %s, or too far below it", first.price, sells[0].price)
	}
	return ""
}

// Maximum distances from a known price, in thousandths of the known price.
const (
	samePermille = 20 // of a price that gets its missing side or currency from the known price
	nearPermille = 60 // of a plausible price
)

func permilleBetween(a, b int64) int64 { return max(a-b, b-a) * 1000 / max(b, 1) }

// useKnown sets a missing side or currency by the known price near a price, unless words name another price for it.
func (f *finder) useKnown() {
	named := map[quoteSide]bool{}
	for _, s := range f.spots {
		named[s.quoteSide] = true
	}
	for _, s := range f.spots {
		if s.isNoise || (s.side == "") == (s.currency == "") {
			continue
		}
		if key, ok := f.supplied(s.quoteSide, s.units); ok && !named[key] {
			s.reasons = append(s.reasons, map[bool]string{true: "side", false: "currency"}[s.side == ""]+" by the known price")
			s.quoteSide = key
		}
	}
}

// supplied returns the key of the only known price within samePermille that has the currency or the side of own.
func (f *finder) supplied(own quoteSide, units int64) (fit quoteSide, ok bool) {
	currencies, fits := map[string]bool{}, 0
	for key, price := range f.known {
		currencies[key.currency] = true
		distance := permilleBetween(units, price)
		if (own.currency == key.currency || own.side == key.side) && distance <= samePermille {
			fit, fits = key, fits+1
		}
	}
	// With several known currencies, the price of one may be near that of another by chance.
	return fit, fits == 1 && (own.currency != "" || len(currencies) == 1)
}

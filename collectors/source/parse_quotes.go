package source

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

// Limits of what is told about a document.
const (
	notesMax           = 50  // further ones are counted
	quotedMax          = 60  // characters of a text in a note or a failure
	unreadableBytesMax = 64  // of a side that can't be read, as the engine keeps it
	quotesMax          = 500 // more quotes in one document are no list of rates
	unreadablePrefix   = "unreadable: "
)

// status is what a place holds, in the order in which one is preferred to another.
type valueStatus int

const (
	statusMissing    valueStatus = iota // nothing stands there
	statusNoValue                       // it says that there is no value
	statusUnreadable                    // something stands there, but no price
	statusZero                          // 0: the engine holds it back (I3)
	statusPrice
	valueStatusCount int = iota
)

// side is one side of a quote as it was found.
type side struct {
	status   valueStatus
	text     string // of the observation
	conflict bool   // the place says two different prices; text names both
}

// quote is one quote of the document.
type quote struct {
	quoteKey
	buy, sell side
}

// String is the quote for people.
func (q *quote) String() string {
	return fmt.Sprintf("%s %s buy %q sell %q", q.institution, q.currency, q.buy.text, q.sell.text)
}

// quoteKey tells quotes apart.
type quoteKey struct {
	institution, currency string
	channel               engine.Channel
	date                  engine.Date
	instant               time.Time
}

// keyOf is whose quote something is: the more exact word wins.
func (r *parser) keyOf(t Target) quoteKey {
	return quoteKey{
		institution: cmp.Or(t.Institution, r.page.Institution, r.source.Institution), currency: cmp.Or(t.Currency, r.page.Currency),
		channel: cmp.Or(t.Channel, r.source.Channel), date: r.date, instant: r.instant,
	}
}

// addQuote keeps a quote with at least one side. The same quote twice is one; two that differ are both kept, and the engine
// refuses to choose.
func (r *parser) addQuote(key quoteKey, buy, sell side) {
	r.count(buy)
	r.count(sell)
	if buy.text == "" && sell.text == "" {
		if buy.status == statusNoValue || sell.status == statusNoValue {
			r.notes.add("%s %s: no value", key.institution, key.currency)
		}
		return
	}
	for _, q := range r.quotes {
		if q.quoteKey == key && q.buy.text == buy.text && q.sell.text == sell.text {
			return
		}
	}
	if len(r.quotes) >= quotesMax {
		failf(WrongContent, "more than %d quotes in one document", quotesMax)
	}
	r.quotes = append(r.quotes, &quote{quoteKey: key, buy: buy, sell: sell})
}

// addSide keeps one side where the other comes from elsewhere in the document.
func (r *parser) addSide(key quoteKey, which Side, value side) {
	for _, q := range r.quotes {
		if q.quoteKey != key {
			continue
		}
		switch own := q.side(which); {
		case own == nil:
		case own.status == statusMissing:
			r.count(value)
			*own = value
			return
		case own.text == value.text:
			return
		}
	}
	switch which {
	case BuySide:
		r.addQuote(key, value, side{})
	case SellSide:
		r.addQuote(key, side{}, value)
	case BothSides:
		r.addQuote(key, value, value)
	}
}

func (r *parser) count(value side) {
	r.counts[value.status]++
	if value.status == statusUnreadable && r.firstUnreadable == "" {
		r.firstUnreadable = value.text
	}
}

func (q *quote) side(which Side) *side {
	switch which {
	case BuySide:
		return &q.buy
	case SellSide:
		return &q.sell
	}
	return nil
}

// requirePrice says whether the document as a whole is an answer. One readable price is enough; the engine sees what is missing.
func (r *parser) requirePrice() {
	switch {
	case r.counts[statusPrice] > 0:
	case r.counts[statusUnreadable] > 0:
		failf(Value, "none of %d values can be read as a rate, as %s", r.counts[statusUnreadable], quoted(r.firstUnreadable))
	case r.counts[statusZero]+r.counts[statusNoValue] > 0:
		failf(Empty, "all of %d values are zero or say that there is none", r.counts[statusZero]+r.counts[statusNoValue])
	default:
		failf(Layout, "no value stands where the definition looks for it%s", r.notes.summary())
	}
}

// valueAt is the price at a place. Several texts there are one price if all that can be read agree.
func (r *parser) valueAt(s scope, place *Locator, currency string) side {
	if place == nil {
		return side{}
	}
	var best side
	for _, one := range r.textsAt(s, place) {
		value := r.priceOf(one, currency)
		if best.status == statusPrice && value.status == statusPrice && !sameValue(best.text, value.text) {
			return side{status: statusUnreadable, text: best.text + " and " + value.text, conflict: true}
		}
		if value.status > best.status {
			best = value
		}
	}
	if place.Column == "" || place.Attribute == "" {
		return best
	}
	return r.checkVisible(s, place, currency, best)
}

// checkVisible holds the attribute of a cell against the price that people see in it: pages sort their tables by attributes, and
// forget to renew them.
func (r *parser) checkVisible(s scope, place *Locator, currency string, value side) side {
	seen := *place
	seen.Attribute = ""
	shows := r.valueAt(s, &seen, currency)
	if shows.status != statusPrice || value.status != statusPrice || sameValue(shows.text, value.text) {
		return value
	}
	return side{status: statusUnreadable, text: value.text + " and " + shows.text, conflict: true}
}

func sameValue(a, b string) bool {
	one, errOne := engine.ReadDecimal(a)
	other, errOther := engine.ReadDecimal(b)
	return errOne == nil && errOther == nil && one.Equal(other)
}

// plainNumber is a number that needs no interpretation.
var plainNumber = regexp.MustCompile(`^[0-9]+(?:\.[0-9]+)?$`)

// priceOf reads one text. What can't be read goes on as it stands, so that the engine keeps it as unparsable with its text (I3).
func (r *parser) priceOf(one foundText, currency string) side {
	text := one.text
	var err error
	if one.kind != displayText && plainNumber.MatchString(text) {
		text, err = exactNumber(text, one.kind, r.source.DecimalsMax)
	} else {
		text, err = parsePrice(text, r.source.Decimal, r.source.DecimalsMax)
	}
	decimal, _ := engine.ReadDecimal(text)
	switch {
	case err != nil || foreignCurrency(one.text, currency) != "":
		return side{status: statusUnreadable, text: unreadableText(one.text)}
	case text == "":
		return side{status: statusNoValue}
	case decimal.IsZero():
		return side{status: statusZero, text: text}
	}
	return side{status: statusPrice, text: text}
}

// exactNumber takes a number as it is written. Zeros at its end say nothing, and are no digits of the source; a cell's digits
// behind the eighth are the noise of binary fractions, and rounded away (I2).
func exactNumber(text string, form textKind, decimalsMax int) (string, error) {
	if form == cellText {
		decimal, err := engine.ReadDecimal(text)
		if err != nil {
			return "", fmt.Errorf("%w: %w", errPrice, err)
		}
		text = decimal.String()
	}
	if placeholderPrice.MatchString(text) {
		return "", nil
	}
	short := text
	if _, decimals, pointed := strings.Cut(text, "."); pointed {
		short = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		if len(decimals) > engine.DecimalPlacesMax {
			text = short
		}
	}
	return text, checkPrice(short, decimalsMax)
}

// unreadableText is the text of a side that can't be read. It must not happen to be a decimal: the engine would believe it.
func unreadableText(text string) string {
	text = collapseSpaces(strings.ToValidUTF8(text, string(utf8.RuneError)))
	if _, err := engine.ReadDecimal(text); err == nil || text == "" {
		text = unreadablePrefix + text
	}
	for len(text) > unreadableBytesMax {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// notes tell what was left out. They are few, short and without control characters, whatever the document says.
type notes struct {
	texts []string
	more  int
}

func (n *notes) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if slices.Contains(n.texts, text) {
		return
	}
	if len(n.texts) >= notesMax {
		n.more++
		return
	}
	n.texts = append(n.texts, text)
}

func (n *notes) list() []string {
	if n.more == 0 {
		return n.texts
	}
	return append(n.texts[:len(n.texts):len(n.texts)], fmt.Sprintf("and %d more", n.more))
}

// summary is the first notes, for the failure that they explain.
func (n *notes) summary() string {
	if len(n.texts) == 0 {
		return ""
	}
	return ": " + strings.Join(n.texts[:min(3, len(n.texts))], "; ")
}

// quoted is a text of a document or definition in a message: short, in quotes, with nothing that breaks a line.
func quoted(text string) string {
	letters := []rune(collapseSpaces(text[:min(len(text), 4*quotedMax)]))
	if len(letters) > quotedMax {
		letters = append(letters[:quotedMax], '…')
	}
	return fmt.Sprintf("%q", string(letters))
}

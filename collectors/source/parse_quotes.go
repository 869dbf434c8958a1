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

// Limits of the texts about a document.
const (
	notesMax           = 50  // further ones are counted
	quotedMax          = 60  // characters of a text in a note or a failure
	unreadableBytesMax = 64  // of an unreadable side, as the engine keeps it
	quotesMax          = 500 // in one document; a list of rates has fewer
	unreadablePrefix   = "unreadable: "
)

// valueStatus is what was found at a locator, from the worst to the best.
type valueStatus int

const (
	statusMissing    valueStatus = iota // nothing is there
	statusNoValue                       // the page says that there is no value
	statusUnreadable                    // a text that is not a price
	statusZero                          // 0, which the engine quarantines
	statusPrice
	valueStatusCount int = iota
)

// side is one side of a quote.
type side struct {
	status   valueStatus
	text     string // of the observation
	conflict bool   // the locator finds two different prices; text names both
}

type quote struct {
	quoteKey
	buy, sell side
}

// String returns the quote for a message.
func (q *quote) String() string {
	return fmt.Sprintf("%s %s buy %q sell %q", q.institution, q.currency, q.buy.text, q.sell.text)
}

// quoteKey identifies a quote.
type quoteKey struct {
	institution, currency string
	channel               engine.Channel
	date                  engine.Date
	instant               time.Time
}

// keyOf returns the quote of a target; what the target omits comes from the page or the source.
func (r *parser) keyOf(t Target) quoteKey {
	return quoteKey{
		institution: cmp.Or(t.Institution, r.page.Institution, r.source.Institution), currency: cmp.Or(t.Currency, r.page.Currency),
		channel: cmp.Or(t.Channel, r.source.Channel), date: r.date, instant: r.instant,
	}
}

// addQuote adds a quote with at least one side. Equal quotes are added once. Different quotes with one key are both
// added, and the engine refuses to choose.
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

// addSide adds one side of a quote whose other side is elsewhere in the document.
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

// requirePrice fails a document without a price.
func (r *parser) requirePrice() {
	switch {
	case r.counts[statusPrice] > 0:
	case r.counts[statusUnreadable] > 0:
		failf(Value, "none of %d values is a rate, such as %s", r.counts[statusUnreadable], quoted(r.firstUnreadable))
	case r.counts[statusZero]+r.counts[statusNoValue] > 0:
		failf(Empty, "all %d values are zero or not available", r.counts[statusZero]+r.counts[statusNoValue])
	default:
		failf(Layout, "there is no value where the definition expects one%s", r.notes.summary())
	}
}

// valueAt returns the price at a locator. Several texts are one price if all readable ones are equal.
func (r *parser) valueAt(s scope, locator *Locator, currency string) side {
	if locator == nil {
		return side{}
	}
	var best side
	for _, one := range r.textsAt(s, locator) {
		value := r.priceOf(one, currency)
		if best.status == statusPrice && value.status == statusPrice && !sameValue(best.text, value.text) {
			return side{status: statusUnreadable, text: best.text + " and " + value.text, conflict: true}
		}
		if value.status > best.status {
			best = value
		}
	}
	if locator.Column == "" || locator.Attribute == "" {
		return best
	}
	return r.checkVisible(s, locator, currency, best)
}

// checkVisible compares the attribute of a cell with the price in it: pages sort their tables by attributes and
// forget to update them.
func (r *parser) checkVisible(s scope, locator *Locator, currency string, value side) side {
	seen := *locator
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

var plainNumber = regexp.MustCompile(`^[0-9]+(?:\.[0-9]+)?$`)

// priceOf reads one text. An unreadable text is kept, so that the engine quarantines it.
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

// exactNumber reads a number as written. Trailing zeros do not count as decimals. Digits of a cell after the eighth
// decimal are binary rounding noise and are rounded away.
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

// unreadableText returns the text of an unreadable side. It must not be a valid decimal, which the engine would
// accept.
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

// notes collects what was skipped: few and short texts without control characters, whatever the document contains.
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

// summary returns the first notes, for a failure that they explain.
func (n *notes) summary() string {
	if len(n.texts) == 0 {
		return ""
	}
	return ": " + strings.Join(n.texts[:min(3, len(n.texts))], "; ")
}

// quoted returns a text of a document or definition for a message: short, quoted, on one line.
func quoted(text string) string {
	letters := []rune(collapseSpaces(text[:min(len(text), 4*quotedMax)]))
	if len(letters) > quotedMax {
		letters = append(letters[:quotedMax], '…')
	}
	return fmt.Sprintf("%q", string(letters))
}

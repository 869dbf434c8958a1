package values

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tasard/tasard/engine"
)

const (
	priceBytesMax  = 200 // longer texts are prose
	wholeDigitsMax = 11  // digits before the decimal mark; the engine supports no more
)

// DecimalMark is the decimal mark of a source.
type DecimalMark string

// The decimal marks. AnyMark accepts both. With AnyMark an ambiguous comma, perhaps a thousands separator, is an error.
const (
	AnyMark DecimalMark = ""
	Point   DecimalMark = "point"
	Comma   DecimalMark = "comma"
)

// rightToLeftOverride makes a browser display the following digits in reverse order.
const rightToLeftOverride = "\u202e"

var errPrice = errors.New("not one price")

// Patterns of texts around a price, and of texts for a missing price.
var (
	currencyPrefix   = regexp.MustCompile(`(?i)^(?:(?:RD ?\$|US ?\$|EU€|[$€£]|DOP|USD|EUR|GBP|CAD|CHF) ?:? ?)`)
	currencySuffix   = regexp.MustCompile(`(?i) ?(?:RD ?\$|US ?\$|[$€£]|DOP|USD|EUR|GBP|CAD|CHF)$`)
	dailyChange      = regexp.MustCompile(`^[-+−]? ?(\$|RD\$|€)? ?[-+−]?([0-9][0-9.,]*)$`)
	noValuePattern   = regexp.MustCompile(`(?i)^(?:[-–—]*|n/?[ad]|n\.[ad]\.|s/d|no disponible|null)$`)
	placeholderPrice = regexp.MustCompile(`^999999(?:\.0*)?$`) // some systems show this without a rate
)

// ParsePrice parses a price written for people. It returns decimal text with the same digits: "56.60" for "RD$ 56,60".
// For a missing price, such as "", "-", "N/A" or "999999", it returns "". A zero is a price.
//
// An ambiguous text is an error. Examples are two numbers, a footnote, a sign, an exponent, digits other than ASCII,
// and "64,050" with mark AnyMark, because its comma may be a decimal mark or a thousands separator. More than
// decimalsMax decimals are an error too.
func ParsePrice(text string, mark DecimalMark, decimalsMax int) (string, error) {
	switch {
	case len(text) > priceBytesMax:
		return "", fmt.Errorf("%w: a text of %d bytes", errPrice, len(text))
	case strings.Contains(text, rightToLeftOverride):
		return "", fmt.Errorf("%w: its digits are displayed in another order", errPrice)
	}
	text = CollapseSpaces(text)
	text, change, hasChange := strings.Cut(text, "=")
	text = strings.TrimSpace(text)
	if noValuePattern.MatchString(text) {
		return "", nil
	}
	prefix := currencyPrefix.FindString(text)
	number := currencySuffix.ReplaceAllLiteralString(text[len(prefix):], "")
	if noValuePattern.MatchString(number) {
		return "", nil
	}
	price, err := parseNumber(number, mark)
	if err != nil {
		return "", err
	}
	if hasChange {
		if err := checkChange(strings.TrimSpace(change), price, strings.TrimSpace(prefix), mark); err != nil {
			return "", err
		}
	}
	if placeholderPrice.MatchString(price) {
		return "", nil
	}
	price = trimPadding(price, decimalsMax)
	return price, checkPrice(price, decimalsMax)
}

// trimPadding removes the zeros after decimalsMax decimals, as in 58.1000. It keeps three decimals as they are: the
// point of 58.100 may be a thousands separator.
func trimPadding(price string, decimalsMax int) string {
	whole, fraction, _ := strings.Cut(price, ".")
	if len(fraction) < 4 || len(fraction) <= decimalsMax || strings.Trim(fraction[decimalsMax:], "0") != "" {
		return price
	}
	return strings.TrimSuffix(whole+"."+fraction[:decimalsMax], ".")
}

// ForeignCurrency returns the currency named in a price's text, or "". The peso and the argument currency do not count.
// For example, "US$ 1.08" is not the price of a euro in pesos.
func ForeignCurrency(text, currency string) string {
	text, _, _ = strings.Cut(CollapseSpaces(text), "=")
	text = strings.ToUpper(strings.TrimSpace(text))
	for _, part := range []string{currencyPrefix.FindString(text), currencySuffix.FindString(text)} {
		code := strings.Trim(part, " :")
		switch code {
		case "", "$", "RD$", "RD $", "DOP":
			continue
		case "US$", "US $":
			code = "USD"
		case "€", "EU€":
			code = "EUR"
		case "£":
			code = "GBP"
		}
		if code != currency {
			return code
		}
	}
	return ""
}

// checkChange returns an error unless the text after an equals sign is a daily change: a number in the price's
// currency, at most a tenth of the price. So "US$1 = RD$58.90" and "60.10 = 58.90" are errors.
func checkChange(text, price, currency string, mark DecimalMark) error {
	match := dailyChange.FindStringSubmatch(text)
	if match == nil || match[1] != currency {
		return fmt.Errorf("%w: %q after an equals sign is not a daily change of %q", errPrice, text, currency+price)
	}
	change, err := parseNumber(match[2], mark)
	if err != nil {
		return err
	}
	changeValue, err := engine.ReadDecimal(change)
	if err != nil {
		return fmt.Errorf("%w: %w", errPrice, err)
	}
	if priceValue, err := engine.ReadDecimal(price); err != nil || changeValue.Units() > priceValue.Units()/10 {
		return fmt.Errorf("%w: a daily change of %s is more than a tenth of the price %s", errPrice, change, price)
	}
	return nil
}

// checkPrice checks decimal text against the limits of the source and of the engine.
func checkPrice(price string, decimalsMax int) error {
	whole, fraction, _ := strings.Cut(price, ".")
	if limit := min(decimalsMax, engine.DecimalPlacesMax); len(fraction) > limit {
		return fmt.Errorf("%w: %q has %d decimals, and this source has at most %d", errPrice, price, len(fraction), limit)
	}
	if len(whole) > wholeDigitsMax {
		return fmt.Errorf("%w: %q has more than %d digits before its mark", errPrice, price, wholeDigitsMax)
	}
	if _, err := engine.ReadDecimal(price); err != nil {
		return fmt.Errorf("%w: %w", errPrice, err)
	}
	return nil
}

// parseNumber parses digits with points and commas. With AnyMark it tries both decimal marks. If both are possible, a
// point is the decimal mark, as usual in the country, but a comma is an error.
func parseNumber(text string, mark DecimalMark) (string, error) {
	pointed, isPointed := parseWithMark(text, ".", ",")
	comma, isComma := parseWithMark(text, ",", ".")
	switch {
	case mark == Point && isPointed:
		return pointed, nil
	case mark == Comma && isComma:
		return comma, nil
	case mark != AnyMark:
		return "", fmt.Errorf("%w: %q, in a source that writes fractions with a %s", errPrice, text, mark)
	case isPointed && isComma && pointed != comma && !strings.Contains(text, "."):
		return "", fmt.Errorf("%w: the comma of %q may be a decimal mark or a thousands separator; set decimal in the definition", errPrice, text)
	case isPointed:
		return pointed, nil
	case isComma:
		return comma, nil
	}
	return "", fmt.Errorf("%w: %q", errPrice, text)
}

// parseWithMark parses digits with at most one decimal mark and optional thousands separators.
func parseWithMark(text, mark, separator string) (string, bool) {
	whole, decimals, hasMark := strings.Cut(text, mark)
	groups := strings.Split(whole, separator)
	for i, group := range groups {
		switch {
		case !allDigits(group) || group == "":
			return "", false
		case i > 0 && len(group) != 3:
			return "", false
		case i == 0 && len(groups) > 1 && (len(group) > 3 || group[0] == '0'):
			return "", false
		}
	}
	whole = strings.Join(groups, "")
	if !hasMark {
		return whole, true
	}
	return whole + "." + decimals, decimals != "" && allDigits(decimals)
}

// allDigits reports whether a text has only ASCII digits. A superscript digit is a footnote.
func allDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

var plainNumber = regexp.MustCompile(`^[0-9]+(?:\.[0-9]+)?$`)

// ParseNumber parses a number from JSON or a workbook. The point is the decimal mark, and trailing zeros do not count
// as decimals. The number is rounded to eight decimals, because later digits are binary rounding errors. ParsePrice
// parses a text that is not a plain number.
func ParseNumber(text string, mark DecimalMark, decimalsMax int) (string, error) {
	if !plainNumber.MatchString(text) {
		return ParsePrice(text, mark, decimalsMax)
	}
	if placeholderPrice.MatchString(text) {
		return "", nil
	}
	trimmed := text
	if _, decimals, hasPoint := strings.Cut(text, "."); hasPoint {
		trimmed = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		if len(decimals) > engine.DecimalPlacesMax {
			rounded, err := engine.ReadDecimal(trimmed)
			if err != nil {
				return "", fmt.Errorf("%w: %w", errPrice, err)
			}
			text, trimmed = rounded.String(), rounded.String()
		}
	}
	return text, checkPrice(trimmed, decimalsMax)
}

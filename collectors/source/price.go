package source

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tasard/tasard/engine"
)

const (
	priceBytesMax  = 200 // longer texts are prose
	wholeDigitsMax = 11  // as many as the engine supports
)

// rightToLeftOverride shows the digits after it in reverse order. Other direction marks do not.
const rightToLeftOverride = "\u202e"

var errPrice = errors.New("not one price")

// The texts around a number: a currency before or after it, a daily change after an equals sign.
var (
	currencyPrefix   = regexp.MustCompile(`(?i)^(?:(?:RD ?\$|US ?\$|EU€|[$€£]|DOP|USD|EUR|GBP|CAD|CHF) ?:? ?)`)
	currencySuffix   = regexp.MustCompile(`(?i) ?(?:RD ?\$|US ?\$|[$€£]|DOP|USD|EUR|GBP|CAD|CHF)$`)
	dailyChange      = regexp.MustCompile(`^[-+−]? ?(\$|RD\$|€)? ?[-+−]?([0-9][0-9.,]*)$`)
	noValuePattern   = regexp.MustCompile(`(?i)^(?:[-–—]*|n/?[ad]|n\.[ad]\.|s/d|no disponible|null)$`)
	placeholderPrice = regexp.MustCompile(`^999999(?:\.0*)?$`) // shown by some systems without a rate
)

// parsePrice parses one price as a page shows it and returns it as plain decimal text with the same digits: "56.60"
// for "RD$ 56,60". It returns "" if the page says that there is no value: nothing, "-", "N/A", "999999". A zero is
// returned as it is.
//
// Anything ambiguous is an error: two numbers, a footnote, a sign, an exponent, "64,050" without a known decimal
// mark, digits other than ASCII. mark is how the source writes fractions; more than decimalsMax digits after it are
// an error.
func parsePrice(text string, mark DecimalMark, decimalsMax int) (string, error) {
	switch {
	case len(text) > priceBytesMax:
		return "", fmt.Errorf("%w: a text of %d bytes", errPrice, len(text))
	case strings.Contains(text, rightToLeftOverride):
		return "", fmt.Errorf("%w: its digits are displayed in another order", errPrice)
	}
	text = collapseSpaces(text)
	text, change, changes := strings.Cut(text, "=")
	text = strings.TrimSpace(text)
	if noValuePattern.MatchString(text) {
		return "", nil
	}
	before := currencyPrefix.FindString(text)
	number := currencySuffix.ReplaceAllLiteralString(text[len(before):], "")
	if noValuePattern.MatchString(number) {
		return "", nil
	}
	price, err := parseNumber(number, mark)
	if err != nil {
		return "", err
	}
	if changes {
		if err := checkChange(strings.TrimSpace(change), price, strings.TrimSpace(before), mark); err != nil {
			return "", err
		}
	}
	if placeholderPrice.MatchString(price) {
		return "", nil
	}
	return price, checkPrice(price, decimalsMax)
}

// foreignCurrency returns a currency in the text of a price other than the peso and its own, "" = none: "US$ 1.08" is
// not a euro in pesos.
func foreignCurrency(text, own string) string {
	text, _, _ = strings.Cut(collapseSpaces(text), "=")
	text = strings.ToUpper(strings.TrimSpace(text))
	for _, part := range []string{currencyPrefix.FindString(text), currencySuffix.FindString(text)} {
		named := strings.Trim(part, " :")
		switch named {
		case "", "$", "RD$", "RD $", "DOP":
			continue
		case "US$", "US $":
			named = "USD"
		case "€", "EU€":
			named = "EUR"
		case "£":
			named = "GBP"
		}
		if named != own {
			return named
		}
	}
	return ""
}

// checkChange checks that the text after an equals sign is a daily change, in the currency of the price and at most a
// tenth of it: "US$1 = RD$58.90" has its price on the other side, and "60.10 = 58.90" has two.
func checkChange(text, price, currency string, mark DecimalMark) error {
	found := dailyChange.FindStringSubmatch(text)
	if found == nil || found[1] != currency {
		return fmt.Errorf("%w: %q after an equals sign is not a daily change of %q", errPrice, text, currency+price)
	}
	change, err := parseNumber(found[2], mark)
	if err != nil {
		return err
	}
	moved, err := engine.ReadDecimal(change)
	if err != nil {
		return fmt.Errorf("%w: %w", errPrice, err)
	}
	if value, err := engine.ReadDecimal(price); err != nil || moved.Units() > value.Units()/10 {
		return fmt.Errorf("%w: a daily change of %s is more than a tenth of the price %s", errPrice, change, price)
	}
	return nil
}

// checkPrice checks a plain decimal text against the limits of the source and of the engine.
func checkPrice(price string, decimalsMax int) error {
	whole, fraction, _ := strings.Cut(price, ".")
	if most := min(decimalsMax, engine.DecimalPlacesMax); len(fraction) > most {
		return fmt.Errorf("%w: %q has %d decimals, and this source has at most %d", errPrice, price, len(fraction), most)
	}
	if len(whole) > wholeDigitsMax {
		return fmt.Errorf("%w: %q has more than %d digits before its mark", errPrice, price, wholeDigitsMax)
	}
	if _, err := engine.ReadDecimal(price); err != nil {
		return fmt.Errorf("%w: %w", errPrice, err)
	}
	return nil
}

// parseNumber parses digits with points and commas. Without a known mark both readings are tried. If they differ, a
// single point is the decimal mark, as is usual in the country; a single comma is ambiguous.
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

// parseWithMark parses digits with at most one decimal mark, and a separator, or none, between thousands.
func parseWithMark(text, mark, between string) (string, bool) {
	whole, decimals, marked := strings.Cut(text, mark)
	groups := strings.Split(whole, between)
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
	if !marked {
		return whole, true
	}
	return whole + "." + decimals, decimals != "" && allDigits(decimals)
}

// allDigits accepts only ASCII digits: a superscript is a footnote.
func allDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

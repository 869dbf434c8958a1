package engine

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// Limits of a decimal.
const (
	DecimalPlacesMax = 8
	decimalScale     = 100_000_000 // units in 1: 10^DecimalPlacesMax
	decimalDigitsMax = 60          // characters; longer texts are refused before any arithmetic
)

// ErrDecimal is wrapped by all errors of ParseDecimal and ReadDecimal.
var ErrDecimal = errors.New("not a decimal")

// Decimal is one side of a rate: a non-negative exact decimal with at most eight fractional digits. It keeps the parsed
// text, because responses repeat it. The zero Decimal is null: the source does not publish the side.
type Decimal struct {
	text  string
	units int64 // of 10^-8
}

// ParseDecimal parses text of the form ^[0-9]+([.][0-9]{1,8})?$, as in the API specification. The limits are 60
// characters and values below 92,233,720,368.54775808. The error wraps ErrDecimal. The result aliases text, so text
// must not be in a reused buffer.
func ParseDecimal(text string) (Decimal, error) {
	whole, fraction, hasPoint := strings.Cut(text, ".")
	switch {
	case len(text) > decimalDigitsMax:
		return Decimal{}, fmt.Errorf("%w: longer than %d characters", ErrDecimal, decimalDigitsMax)
	case whole == "" || !allDigits(whole) || !allDigits(fraction) || hasPoint && fraction == "":
		return Decimal{}, fmt.Errorf("%w: %q is not of the form 58.95", ErrDecimal, text)
	case len(fraction) > DecimalPlacesMax:
		return Decimal{}, fmt.Errorf("%w: %q has more than %d fractional digits", ErrDecimal, text, DecimalPlacesMax)
	}
	units, ok := parseScaled(whole, fraction, DecimalPlacesMax)
	if !ok {
		return Decimal{}, fmt.Errorf("%w: %q is too large", ErrDecimal, text)
	}
	return Decimal{text: text, units: units}, nil
}

// ReadDecimal parses a source's number. Unlike ParseDecimal, it accepts longer fractions, such as 58.949999999999996
// from a binary workbook cell. It rounds them half to even to eight digits and drops trailing zeros. It copies text,
// which may be part of a large document.
func ReadDecimal(text string) (Decimal, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) <= DecimalPlacesMax || len(text) > decimalDigitsMax ||
		whole == "" || !allDigits(whole) || !allDigits(fraction) {
		return ParseDecimal(strings.Clone(text))
	}
	exact, _, err := apd.NewFromString(text)
	if err != nil {
		return Decimal{}, fmt.Errorf("%w: %q: %w", ErrDecimal, text, err)
	}
	context := apd.Context{
		Precision:   decimalDigitsMax + DecimalPlacesMax,
		MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent,
		Rounding: apd.RoundHalfEven, Traps: apd.DefaultTraps,
	}
	rounded := new(apd.Decimal)
	if _, err := context.Quantize(rounded, exact, -DecimalPlacesMax); err != nil {
		return Decimal{}, fmt.Errorf("%w: round %q: %w", ErrDecimal, text, err)
	}
	return ParseDecimal(strings.TrimRight(strings.TrimRight(rounded.Text('f'), "0"), "."))
}

// IsNull reports whether the decimal is null.
func (d Decimal) IsNull() bool { return d.text == "" }

// IsZero reports whether the value is 0. Null is not zero.
func (d Decimal) IsZero() bool { return d.text != "" && d.units == 0 }

// String returns the parsed text, or "" for null.
func (d Decimal) String() string { return d.text }

// Units returns the value in units of 10^-8, or 0 for null.
func (d Decimal) Units() int64 { return d.units }

// Compare compares the values, so that 59.30 and 59.3 are equal. Null compares as 0.
func (d Decimal) Compare(other Decimal) int { return cmp.Compare(d.units, other.units) }

// Equal reports whether the values are equal, or both are null.
func (d Decimal) Equal(other Decimal) bool {
	return d.units == other.units && d.IsNull() == other.IsNull()
}

func allDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// parseScaled returns whole.fraction in units of 10^-places, or false if that overflows. Both parts must be digits.
func parseScaled(whole, fraction string, places int) (int64, bool) {
	const zeros = "00000000" // DecimalPlacesMax zeros
	value, err := strconv.ParseInt(whole+fraction+zeros[:places-len(fraction)], 10, 64)
	return value, err == nil
}

// decimalOf returns the decimal of a number of units, with the shortest text.
func decimalOf(units int64) Decimal {
	text := strconv.AppendInt(make([]byte, 0, 24), units/decimalScale, 10)
	point := len(text)
	text = strconv.AppendInt(text, decimalScale+units%decimalScale, 10) // nine digits
	text[point] = '.'
	return Decimal{text: strings.TrimRight(strings.TrimRight(string(text), "0"), "."), units: units}
}

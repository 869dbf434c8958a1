package engine

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// Limits of a decimal: the contract's fractional digits, and what fits 64 bits at that scale.
const (
	DecimalPlacesMax = 8
	decimalScale     = 100_000_000 // units in 1, = 10^DecimalPlacesMax
	decimalDigitsMax = 60          // longer texts are no rate, and are refused before any arithmetic
)

// ErrDecimal is what every refused decimal text wraps.
var ErrDecimal = errors.New("not a decimal")

// Decimal is a non-negative exact decimal with at most eight fractional digits: a side of a rate. It keeps the
// text it was read from, because answers repeat it verbatim (S9), beside its value in units of 10^-8, which
// orders and multiplies it. The zero Decimal is null: a side that the source does not publish.
type Decimal struct {
	text  string
	units int64
}

// ParseDecimal reads a decimal in the contract's form, ^[0-9]+([.][0-9]{1,8})?$, and keeps its text verbatim, so the text
// must not be borrowed from a buffer that is used again. Texts of more than 60 characters and values of 92,233,720,368.54775808
// and more are refused; so is everything else, with an error that wraps ErrDecimal.
func ParseDecimal(text string) (Decimal, error) {
	whole, fraction, dotted := strings.Cut(text, ".")
	switch {
	case len(text) > decimalDigitsMax:
		return Decimal{}, fmt.Errorf("%w: longer than %d characters", ErrDecimal, decimalDigitsMax)
	case whole == "" || !allDigits(whole) || !allDigits(fraction) || dotted && fraction == "":
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

// ReadDecimal reads what a source published: as ParseDecimal, but a longer fraction, which only the binary cells of a
// workbook give (58.949999999999996), is rounded half even to eight digits and loses the zeros at its end (I2). The text is
// copied: five characters of a page must not keep the page in memory.
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

// IsNull reports whether the side is absent.
func (d Decimal) IsNull() bool { return d.text == "" }

// IsZero reports whether the side is present and 0, which no bank pays (I3).
func (d Decimal) IsZero() bool { return d.text != "" && d.units == 0 }

// String is the text as it was published, "" when null.
func (d Decimal) String() string { return d.text }

// Units is the value in 10^-8, 0 when null.
func (d Decimal) Units() int64 { return d.units }

// Compare orders by value, not by text: 59.30 and 59.3 are equal (S3). Null stands where 0 stands.
func (d Decimal) Compare(other Decimal) int { return cmp.Compare(d.units, other.units) }

// Equal is equality of value and of presence.
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

// parseScaled is whole.fraction in units of 10^-places; both are digits, fraction has at most places of them. False when it
// overflows.
func parseScaled(whole, fraction string, places int) (int64, bool) {
	const zeros = "00000000" // DecimalPlacesMax of them
	value, err := strconv.ParseInt(whole+fraction+zeros[:places-len(fraction)], 10, 64)
	return value, err == nil
}

// decimalOf is the value of units in its shortest text.
func decimalOf(units int64) Decimal {
	text := fmt.Sprintf("%d.%08d", units/decimalScale, units%decimalScale)
	return Decimal{text: strings.TrimRight(strings.TrimRight(text, "0"), "."), units: units}
}

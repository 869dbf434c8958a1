package engine

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
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

// Limits of a foreign amount.
const (
	AmountWholeDigitsMax = 12
	AmountPlacesMax      = 2
)

// AmountDOPBytesMax is the maximum length of AmountDOP: 999999999999.99 × 92233720368.54775807.
const AmountDOPBytesMax = 26

// ErrAmount is wrapped by all errors of ParseAmount.
var ErrAmount = errors.New("not an amount")

// Amount is an exact amount of foreign currency, with up to 12 integer digits and 2 decimals. It keeps the parsed text,
// because responses repeat it.
type Amount struct {
	text  string
	cents int64
}

// ParseAmount parses text of the form ^[0-9]{1,12}([.][0-9]{1,2})?$; the error wraps ErrAmount. The result aliases
// text, so text must not be in a reused buffer.
func ParseAmount(text string) (Amount, error) {
	whole, fraction, hasPoint := strings.Cut(text, ".")
	if whole == "" || len(whole) > AmountWholeDigitsMax || len(fraction) > AmountPlacesMax ||
		hasPoint && fraction == "" || !allDigits(whole) || !allDigits(fraction) {
		return Amount{}, fmt.Errorf("%w: up to %d digits, a point and up to %d decimals, as 250.00",
			ErrAmount, AmountWholeDigitsMax, AmountPlacesMax)
	}
	cents, ok := parseScaled(whole, fraction, AmountPlacesMax)
	if !ok {
		return Amount{}, fmt.Errorf("%w: too large", ErrAmount)
	}
	return Amount{text: text, cents: cents}, nil
}

// String returns the text that was parsed.
func (a Amount) String() string { return a.text }

// FeeNotice is the default notice about fees in every conversion.
const FeeNotice = "El monto no incluye comisiones, impuestos ni cargos de la entidad; confirme el total antes de operar."

// Conversion converts an amount of foreign currency to pesos at one rate.
type Conversion struct {
	Quote     *Rate
	Operation Operation
	Amount    Amount
}

// Side returns the price for the operation: the rate's buy or sell side.
func (c Conversion) Side() Decimal { return c.Quote.Side(c.Operation) }

// AmountDOP returns amount × side with two decimals, rounded half up. If the rate lacks the side, it returns 0.00.
func (c Conversion) AmountDOP() string { return string(c.AppendAmountDOP(nil)) }

// AppendAmountDOP appends AmountDOP to dst; it does not allocate if dst has capacity for AmountDOPBytesMax more bytes.
func (c Conversion) AppendAmountDOP(dst []byte) []byte {
	high, low := bits.Mul64(uint64(c.Amount.cents), uint64(c.Side().units)) // the factors have at most 47 and 63 bits
	low, carry := bits.Add64(low, decimalScale/2, 0)
	high += carry
	if high == 0 { // the usual case, for which a 64-bit division is several times as fast
		low /= decimalScale
		return appendPesos(dst, low/100, low%100)
	}
	quotientHigh, remainder := high/decimalScale, high%decimalScale
	quotientLow, _ := bits.Div64(remainder, low, decimalScale)
	return appendCents(dst, quotientHigh, quotientLow)
}

// appendCents appends a 128-bit number of cents as pesos with two decimals.
func appendCents(dst []byte, high, low uint64) []byte {
	const chunk = 1_000_000_000_000_000_000 // 10^18
	if high == 0 {
		return appendPesos(dst, low/100, low%100)
	}
	top, low := bits.Div64(high, low, chunk) // top < 10^7, because high and low together have at most 25 digits
	dst = strconv.AppendUint(dst, top, 10)
	pesos := low / 100 // printed with 16 digits, including leading zeros
	for limit := uint64(chunk / 1000); limit > pesos && limit > 1; limit /= 10 {
		dst = append(dst, '0')
	}
	return appendPesos(dst, pesos, low%100)
}

func appendPesos(dst []byte, pesos, cents uint64) []byte {
	dst = strconv.AppendUint(dst, pesos, 10)
	return append(dst, '.', byte('0'+cents/10), byte('0'+cents%10))
}

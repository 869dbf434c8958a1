package engine

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Limits of a foreign amount (interface §8).
const (
	AmountWholeDigitsMax = 12
	AmountPlacesMax      = 2
)

// AmountDOPBytesMax is the length of the longest AmountDOP: 999999999999.99 × 92233720368.54775807, which has 23 digits
// before the point.
const AmountDOPBytesMax = 26

// ErrAmount is what every refused amount wraps.
var ErrAmount = errors.New("not an amount")

// Amount is an exact amount of foreign currency, up to 12 integer digits and 2 decimals, with its text as it was given. The
// zero Amount is none: its text is "".
type Amount struct {
	text  string
	cents int64
}

// ParseAmount reads ^[0-9]{1,12}([.][0-9]{1,2})?$ and nothing else; the error wraps ErrAmount. It keeps the text, which must
// not be borrowed from a buffer that is used again.
func ParseAmount(text string) (Amount, error) {
	whole, fraction, dotted := strings.Cut(text, ".")
	if whole == "" || len(whole) > AmountWholeDigitsMax || len(fraction) > AmountPlacesMax ||
		dotted && fraction == "" || !allDigits(whole) || !allDigits(fraction) {
		return Amount{}, fmt.Errorf("%w: up to %d digits, a point and up to %d decimals, as 250.00",
			ErrAmount, AmountWholeDigitsMax, AmountPlacesMax)
	}
	cents, ok := parseScaled(whole, fraction, AmountPlacesMax)
	if !ok {
		return Amount{}, fmt.Errorf("%w: too large", ErrAmount)
	}
	return Amount{text: text, cents: cents}, nil
}

// String is the amount as the caller wrote it (S9).
func (a Amount) String() string { return a.text }

// FeeNotice is the default sentence about fees that goes with each conversion (S10).
const FeeNotice = "El monto no incluye comisiones, impuestos ni cargos de la entidad; confirme el total antes de operar."

// Conversion is one line of a comparison: what Amount costs, or brings, in DOP at Quote.
type Conversion struct {
	Quote     *Rate
	Operation Operation
	Amount    Amount
}

// Side is the side of the quote that the operation applies (S1).
func (c Conversion) Side() Decimal { return c.Quote.Side(c.Operation) }

// AmountDOP is amount × side with exactly two decimals, rounded once, half up (S8). The side must be there (S4): without it
// the answer is 0.00.
func (c Conversion) AmountDOP() string { return string(c.AppendAmountDOP(nil)) }

// AppendAmountDOP appends AmountDOP to dst, without allocating where dst has room for AmountDOPBytesMax. The product of cents
// (47 bits) and units of 10^-8 (63 bits) is taken in 128.
func (c Conversion) AppendAmountDOP(dst []byte) []byte {
	high, low := bits.Mul64(uint64(c.Amount.cents), uint64(c.Side().units))
	low, carry := bits.Add64(low, decimalScale/2, 0)
	high += carry
	quotientHigh, rest := high/decimalScale, high%decimalScale
	quotientLow, _ := bits.Div64(rest, low, decimalScale)
	return appendCents(dst, quotientHigh, quotientLow)
}

// appendCents appends the 128-bit number of cents as pesos with two decimals.
func appendCents(dst []byte, high, low uint64) []byte {
	const chunk = 1_000_000_000_000_000_000 // 10^18
	if high == 0 {
		return appendPesos(dst, low/100, low%100)
	}
	top, rest := bits.Div64(high, low, chunk) // top < 10^7: 10^14 cents × 10^19 units / 10^8 have at most 25 digits
	dst = strconv.AppendUint(dst, top, 10)
	pesos := rest / 100 // 16 digits, with the zeros before them
	for limit := uint64(chunk / 1000); limit > pesos && limit > 1; limit /= 10 {
		dst = append(dst, '0')
	}
	return appendPesos(dst, pesos, rest%100)
}

func appendPesos(dst []byte, pesos, cents uint64) []byte {
	dst = strconv.AppendUint(dst, pesos, 10)
	return append(dst, '.', byte('0'+cents/10), byte('0'+cents%10))
}

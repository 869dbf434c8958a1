package engine

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

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

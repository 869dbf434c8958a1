package engine

import (
	"errors"
	"fmt"
	"math"
	"math/big"
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
	if high == 0 && low <= math.MaxUint64-decimalScale/2 {                  // the usual case
		cents := (low + decimalScale/2) / decimalScale
		return appendPesos(dst, cents/100, cents%100)
	}
	product := new(big.Int).Mul(big.NewInt(c.Amount.cents), big.NewInt(c.Side().units))
	cents := product.Add(product, big.NewInt(decimalScale/2)).Div(product, big.NewInt(decimalScale))
	pesos, rest := cents.DivMod(cents, big.NewInt(100), new(big.Int))
	return fmt.Appendf(dst, "%s.%02d", pesos, rest)
}

func appendPesos(dst []byte, pesos, cents uint64) []byte {
	dst = strconv.AppendUint(dst, pesos, 10)
	return append(dst, '.', byte('0'+cents/10), byte('0'+cents%10))
}

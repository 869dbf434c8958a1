package engine

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// decimalGrammar is the form that the contract states.
var decimalGrammar = regexp.MustCompile(`^[0-9]+([.][0-9]{1,8})?$`)

// rationalOf is the exact value of a decimal, by another parser.
func rationalOf(text string) *big.Rat {
	value, ok := new(big.Rat).SetString(text)
	if !ok {
		panic("no number: " + text)
	}
	return value
}

// unitsOf is a rational in units of 10^-8, rounded half to even; nil when it does not fit a Decimal.
func unitsOf(value *big.Rat) *big.Int {
	units := halfEven(new(big.Rat).Mul(value, big.NewRat(decimalScale, 1)))
	if !units.IsInt64() {
		return nil
	}
	return units
}

// halfEven rounds a rational to a whole number, halves to even.
func halfEven(value *big.Rat) *big.Int {
	units, rest := new(big.Int).QuoRem(value.Num(), value.Denom(), new(big.Int))
	twice := rest.Lsh(rest, 1).Cmp(value.Denom())
	if twice > 0 || twice == 0 && units.Bit(0) == 1 {
		units.Add(units, big.NewInt(1))
	}
	return units
}

// parseFault compares a parser with the grammar and big.Rat; "" when they agree.
func parseFault(parse func(string) (Decimal, error), text string) string {
	got, err := parse(text)
	wanted := decimalGrammar.MatchString(text) && len(text) <= decimalDigitsMax && unitsOf(rationalOf(text)) != nil
	switch {
	case !wanted && err == nil:
		return fmt.Sprintf("%q was accepted", text)
	case !wanted && (!errors.Is(err, ErrDecimal) || got != Decimal{}):
		return fmt.Sprintf("%q gave %+v and an error that is not ErrDecimal: %v", text, got, err)
	case !wanted:
		return ""
	case err != nil:
		return fmt.Sprintf("%q was refused: %v", text, err)
	case got.String() != text || got.IsNull():
		return fmt.Sprintf("%q became %q", text, got)
	case unitsOf(rationalOf(text)).Int64() != got.Units():
		return fmt.Sprintf("%q has %d units", text, got.Units())
	}
	return ""
}

// decimalLike draws texts near the grammar: most are one change away from it.
func decimalLike() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[0-9]{1,12}([.][0-9]{1,9})?`),
		rapid.StringMatching(`0{0,50}[0-9]{8,14}([.][0-9]{1,8})?`),
		rapid.StringMatching(`[-+]?[0-9]{0,3}[.,]?[0-9]{0,3}[eE_ .]?[0-9]{0,2}`),
		rapid.StringMatching(`[0-9]{1,2}[.][0-9]{1,2}[\n ٣]`),
	)
}

func TestParseDecimal_IsTheGrammarOfTheContract(t *testing.T) {
	drawTexts(t, decimalLike(), func(text string) string { return parseFault(ParseDecimal, text) })
}

func TestDecimal_NullAndZero(t *testing.T) {
	null, zero, some := Decimal{}, decimalFrom("0.00"), decimalFrom("0.00000001")
	if !null.IsNull() || null.IsZero() || zero.IsNull() || !zero.IsZero() || some.IsNull() || some.IsZero() {
		t.Error("null, zero and the smallest value are not distinguished")
	}
	if null.Equal(zero) || !null.Equal(Decimal{}) || !zero.Equal(decimalFrom("0")) || zero.Equal(some) {
		t.Error("Equal does not tell null, zero and the smallest value apart")
	}
	if null.String() != "" || null.Units() != 0 || some.Units() != 1 {
		t.Error("text or units of null or of the smallest value")
	}
	if got := decimalFrom("92233720368.54775807").Units(); got != math.MaxInt64 {
		t.Errorf("the largest value has %d units", got)
	}
}

func TestS3_CompareMatchesRationals(t *testing.T) {
	text := rapid.StringMatching(`[0-9]{1,10}([.][0-9]{1,8})?`)
	near := rapid.SampledFrom([]string{"59.3", "59.30", "59.31", "59.3000", "60", "59.29999999"})
	rapid.Check(t, func(t *rapid.T) {
		a, _ := ParseDecimal(rapid.OneOf(text, near).Draw(t, "a"))
		b, _ := ParseDecimal(rapid.OneOf(text, near).Draw(t, "b"))
		if want := rationalOf(a.String()).Cmp(rationalOf(b.String())); a.Compare(b) != want || a.Equal(b) != (want == 0) {
			t.Fatalf("%s against %s: %d, want %d", a, b, a.Compare(b), want)
		}
	})
}

// readFault compares a reader of source texts with big.Rat; "" when they agree.
func readFault(read func(string) (Decimal, error), text string) string {
	_, fraction, _ := strings.Cut(text, ".")
	if len(fraction) <= DecimalPlacesMax || len(text) > decimalDigitsMax || !regexp.MustCompile(`^[0-9]+[.][0-9]+$`).MatchString(text) {
		return parseFault(read, text)
	}
	got, err := read(text)
	want := unitsOf(rationalOf(text))
	if want == nil {
		if !errors.Is(err, ErrDecimal) || got != (Decimal{}) {
			return fmt.Sprintf("%q is too large, and gave %q, %v", text, got, err)
		}
		return ""
	}
	if err != nil || got.Units() != want.Int64() || got.IsNull() {
		return fmt.Sprintf("%q became %q, %v; want %v units", text, got, err, want)
	}
	if again := parseFault(ParseDecimal, got.String()); again != "" || strings.Contains(got.String(), ".") && strings.HasSuffix(got.String(), "0") {
		return fmt.Sprintf("%q became %q, which is not a contract decimal without trailing zeros: %s", text, got, again)
	}
	return ""
}

// longFraction draws texts with more than eight fractional digits, many of them ties or next to one.
func longFraction() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[0-9]{1,11}[.][0-9]{9,20}`),
		rapid.StringMatching(`[0-9]{1,2}[.][0-9]{8}50{0,8}`),
		rapid.StringMatching(`[0-9]{1,2}[.][0-9]{8}(49{8}|50{8}1)`),
		rapid.StringMatching(`[0-9]{1,2}[.](0{8,20}|9{8,20})[0-9]`),
	)
}

func TestI2_ReadDecimalMatchesRationalsHalfEven(t *testing.T) {
	drawTexts(t, longFraction(), func(text string) string { return readFault(ReadDecimal, text) })
}

func TestDecimalOf_IsTheShortestText(t *testing.T) {
	for units, want := range map[int64]string{
		0: "0", 1: "0.00000001", 100_000_000: "1", 5_895_000_000: "58.95", 10_000_000_000: "100", math.MaxInt64: "92233720368.54775807",
	} {
		if got := decimalOf(units); got.String() != want || got.Units() != units || decimalFrom(want) != got {
			t.Errorf("decimalOf(%d) = %q, want %q", units, got, want)
		}
	}
}

// The seeds are both sides of each limit of the grammar.
func FuzzParseDecimal(f *testing.F) {
	fuzzTexts(f, func(text string) string { return parseFault(ParseDecimal, text) },
		"0", "0.0", "000.00000000", "58.95", "58.95000000", "00058.95", "92233720368.54775807", "92233720368", strings.Repeat("0", 60),
		"", ".", ".5", "5.", "58.", "-1", "+1", "1,5", "1e1", "1e5", " 1", "1 ", "1\n", "1..2", "1.2.3", "1.123456789", "0x1", "1_000", "٣", "NaN",
		"Infinity", "92233720368.54775808", "92233720369", "99999999999999999999", strings.Repeat("0", 61), strings.Repeat("9", 61))
}

func FuzzReadDecimal(f *testing.F) {
	fuzzTexts(f, func(text string) string { return readFault(ReadDecimal, text) },
		"58.949999999999996", "58.950000000000003", "59.299999999999997", "60.000000000000007", "99.999999999999999", "00058.949999999999996",
		"58.000050000000002", "58.950000000000000", "99.999999999", "92233720368.547758074",
		"0.123456785", "0.123456775", "0.12345678500000001", "0.12345677499999999", // ties, and beside them
		"0.000000005", "0.000000015", // present, and 0: refused later for being 0
		"59.30", "59.3", "59", "059.300", "0", "0.00", "58.95000000", "1.00000001", // verbatim
		".123456789", "-1.123456789", "1.12345678x", "1.1234567890e2", "1.123456789e5", "1.123456789.1", "92233720368.547758079", "x.123456789",
		"99999999999999999999.999999999", "1."+strings.Repeat("3", decimalDigitsMax-2), "1."+strings.Repeat("1", decimalDigitsMax-1))
}

// amountGrammar is the form that the contract states.
var amountGrammar = regexp.MustCompile(`^[0-9]{1,12}([.][0-9]{1,2})?$`)

// amountFault compares ParseAmount with the grammar; "" when they agree.
func amountFault(text string) string {
	got, err := ParseAmount(text)
	if !amountGrammar.MatchString(text) {
		if !errors.Is(err, ErrAmount) || got != (Amount{}) {
			return fmt.Sprintf("%q gave %+v, %v; want an ErrAmount", text, got, err)
		}
		return ""
	}
	if err != nil || got.String() != text {
		return fmt.Sprintf("%q gave %q, %v", text, got, err)
	}
	if want := new(big.Rat).Mul(rationalOf(text), big.NewRat(100, 1)); want.Cmp(big.NewRat(got.cents, 1)) != 0 {
		return fmt.Sprintf("%q has %d cents", text, got.cents)
	}
	return ""
}

func TestParseAmount_IsTheGrammarOfTheContract(t *testing.T) {
	drawTexts(t, rapid.OneOf(
		rapid.StringMatching(`[0-9]{1,13}([.][0-9]{1,3})?`),
		rapid.StringMatching(`[-+]?[0-9]{0,3}[.,]?[0-9]{0,3}[eE_ \n.]?`),
	), amountFault)
}

// conversion returns amount × side.
func conversion(t testing.TB, amount, side string) Conversion {
	t.Helper()
	parsedAmount, err := ParseAmount(amount)
	if err != nil {
		t.Fatalf("ParseAmount(%q): %v", amount, err)
	}
	return Conversion{Quote: &Rate{Sell: decimalFrom(side)}, Operation: Buy, Amount: parsedAmount}
}

func TestS8_Edges(t *testing.T) {
	for _, c := range []struct{ amount, side, want string }{
		{"2.05", "59.30", "121.57"}, {"0.25", "58.50", "14.63"}, {"100.00", "58.00005", "5800.01"}, {"1.15", "58.10", "66.82"},
		{"0.01", "0.5", "0.01"}, {"1", "0.004", "0.00"}, {"999999999999.99", "99999999.99999999", "99999999999998990000.00"},
		{"1", "0.005", "0.01"},
		{"1", "0.00499999", "0.00"},
		{"0.01", "0.49999999", "0.00"},
		{"184467440737.09", "100", "18446744073709.00"},
		{"0.99", "92233720368.54775807", "91311383164.86"},
		{"184467440737.09", "10000000", "1844674407370900000.00"},     // more than 64 bits of cents
		{"100000000000", "1000000.00", "100000000000000000.00"},       // 10^19 cents
		{"000000000000.00", "92233720368.54775807", "0.00"},           // twelve zeros
		{"184467440738", "1000000", "184467440738000000.00"},          //
		{"300000000000", "1000000.00000001", "300000000000003000.00"}, // zeros in the middle of both halves
		{"1000", "1844674.40737095", "1844674407.37"},                 // only rounding needs a second word
		{"100000000000", "10000000", "1000000000000000000.00"},        // the lower half is all zeros
		{"100000000000", "10010000", "1001000000000000000.00"},        // it begins with a digit,
		{"100000000000", "10009995", "1000999500000000000.00"},        // with a zero before nines,
		{"100000000000", "10010005", "1001000500000000000.00"},        // with a one before zeros,
		{"100000000000", "10000950", "1000095000000000000.00"},        // with two zeros
		{"999999999999.99", "92233720368.54775807", "92233720368546835732796.31"},
	} {
		got := conversion(t, c.amount, c.side).AmountDOP()
		if want := new(big.Rat).Mul(rationalOf(c.amount), rationalOf(c.side)).FloatString(2); got != want || got != c.want {
			t.Errorf("%s × %s = %s, want %s and %s", c.amount, c.side, got, c.want, want)
		}
		if len(got) > AmountDOPBytesMax {
			t.Errorf("%s is longer than AmountDOPBytesMax", got)
		}
	}
	if longest := conversion(t, "999999999999.99", "92233720368.54775807").AmountDOP(); len(longest) != AmountDOPBytesMax {
		t.Errorf("the longest amount has %d bytes, AmountDOPBytesMax is %d", len(longest), AmountDOPBytesMax)
	}
}

func TestS1_ConversionAppliesTheSideOfTheOperation(t *testing.T) {
	quote := &Rate{Buy: decimalFrom("58"), Sell: decimalFrom("60")}
	amount, _ := ParseAmount("10")
	for operation, want := range map[Operation]string{Buy: "600.00", Sell: "580.00"} {
		if got := (Conversion{Quote: quote, Operation: operation, Amount: amount}).AmountDOP(); got != want {
			t.Errorf("%s: %s, want %s", operation, got, want)
		}
	}
}

func TestS4_ConversionWithoutASideIsZero(t *testing.T) {
	if got := (Conversion{Quote: &Rate{}, Operation: Buy}).AmountDOP(); got != "0.00" {
		t.Error(got)
	}
}

// number is a text and its exact value, made without the parsers under test.
type number struct {
	text  string
	exact *big.Rat
}

// anyNumber returns a random number of any magnitude below limit / 10^placesMax, with 0 to placesMax decimals.
func anyNumber(dice *rand.Rand, limit uint64, placesMax int) number {
	places, ten := dice.IntN(placesMax+1), uint64(1)
	for range places {
		ten *= 10
	}
	for range placesMax - places {
		limit /= 10
	}
	value := dice.Uint64() >> dice.IntN(64) % limit
	text := fmt.Sprintf("%d", value/ten)
	if places > 0 {
		text = fmt.Sprintf("%s.%0*d", text, places, value%ten)
	}
	return number{text, new(big.Rat).SetFrac(new(big.Int).SetUint64(value), new(big.Int).SetUint64(ten))}
}

// conversionFaults compares random conversions with big.Rat and counts those that differ.
func conversionFaults(t testing.TB, dice *rand.Rand, count int, convert func(Conversion) string) (wrong int, first string) {
	t.Helper()
	product := new(big.Rat)
	for range count {
		amount := anyNumber(dice, 100_000_000_000_000, AmountPlacesMax)
		side := anyNumber(dice, 1<<63, DecimalPlacesMax)
		want := product.Mul(amount.exact, side.exact).FloatString(2) // halves away from zero: up
		if got := convert(conversion(t, amount.text, side.text)); got != want {
			if wrong++; wrong == 1 {
				first = fmt.Sprintf("%s × %s = %s, want %s", amount.text, side.text, got, want)
			}
		}
	}
	return wrong, first
}

func TestS8_ConversionMatchesRationals(t *testing.T) {
	if wrong, fault := conversionFaults(t, rand.New(rand.NewPCG(8, 59_30)), sweep(30_000, 1_000_000), Conversion.AmountDOP); wrong > 0 {
		t.Error(fault)
	}
}

func FuzzParseAmount(f *testing.F) {
	fuzzTexts(f, amountFault, "0", "0.00", "00.5", "250.00", "999999999999.99", "000000000001", "", ".", "1.", ".1", "1.234", "1234567890123", "-1",
		"+1", "1,5", "1e2", " 1", "1 ", "1\n", "٣", "0x1", "1_0", "1.2.3", strings.Repeat("9", 1000))
}

func TestAppendAmountDOP_DoesNotAllocate(t *testing.T) {
	buffer := make([]byte, 0, AmountDOPBytesMax)
	for _, amount := range []string{"250.00", "999999999.99", "999999999999.99"} {
		c := conversion(t, amount, "58.95")
		if n := testing.AllocsPerRun(100, func() { buffer = c.AppendAmountDOP(buffer[:0]) }); n != 0 {
			t.Errorf("%s: %v allocations", amount, n)
		}
	}
}

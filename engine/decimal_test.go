package engine

import (
	"errors"
	"fmt"
	"math"
	"math/big"
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

package engine

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

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

package client

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// Decimal is a decimal number as it stands in an answer: 59.30. It is a text: nothing is rounded and no zero is lost. For sums take Rat, or a
// library of decimals; never a float.
type Decimal string

// fractionMax is how many digits may follow the point.
const fractionMax = 8

// IsValid tells whether the text is a decimal of the contract.
func (d Decimal) IsValid() bool {
	whole, fraction, broken := strings.Cut(string(d), ".")
	return isDigits(whole) && (!broken || isDigits(fraction) && len(fraction) <= fractionMax)
}

func isDigits(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}

// Rat is the exact value, 0 for a text that is no decimal; IsValid tells the two apart. Those of answers are always valid.
func (d Decimal) Rat() *big.Rat {
	value := new(big.Rat)
	if d.IsValid() { // SetString would take 1e9 and 1/3 too
		value.SetString(string(d))
	}
	return value
}

// Cmp compares by value: 59.3 is 59.30.
func (d Decimal) Cmp(other Decimal) int { return d.Rat().Cmp(other.Rat()) }

// UnmarshalJSON takes the contract's form only: a text, digits, at most one point.
func (d *Decimal) UnmarshalJSON(text []byte) error {
	var read *string // a pointer: null is no text
	if err := json.Unmarshal(text, &read); err != nil || read == nil {
		return fmt.Errorf("want a decimal as text, found %.40s", text)
	}
	if !Decimal(*read).IsValid() {
		return fmt.Errorf("want a decimal such as 59.30, found %.40q", *read)
	}
	*d = Decimal(*read)
	return nil
}

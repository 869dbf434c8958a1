package client

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// Decimal is a decimal number as text, as the node wrote it: 59.30. Calculate with Rat or a decimal library, never
// with a float.
type Decimal string

// fractionMax is the number of digits allowed after the point.
const fractionMax = 8

// IsValid reports whether the text is a decimal as in the API specification. Decimals in responses are always valid.
func (d Decimal) IsValid() bool {
	whole, fraction, hasPoint := strings.Cut(string(d), ".")
	return isDigits(whole) && (!hasPoint || isDigits(fraction) && len(fraction) <= fractionMax)
}

func isDigits(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}

// Rat returns the exact value, or 0 if the text is not valid.
func (d Decimal) Rat() *big.Rat {
	value := new(big.Rat)
	if d.IsValid() { // SetString also accepts 1e9 and 1/3
		value.SetString(string(d))
	}
	return value
}

// Cmp compares values: 59.3 equals 59.30.
func (d Decimal) Cmp(other Decimal) int { return d.Rat().Cmp(other.Rat()) }

// UnmarshalJSON accepts only valid decimals as JSON strings.
func (d *Decimal) UnmarshalJSON(text []byte) error {
	var decoded *string // nil for null
	if err := json.Unmarshal(text, &decoded); err != nil || decoded == nil {
		return fmt.Errorf("want a decimal as text, found %.40s", text)
	}
	if !Decimal(*decoded).IsValid() {
		return fmt.Errorf("want a decimal such as 59.30, found %.40q", *decoded)
	}
	*d = Decimal(*decoded)
	return nil
}

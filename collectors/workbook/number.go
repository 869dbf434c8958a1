package workbook

import (
	"math"
	"strconv"
	"strings"
)

// This file is the only place with binary fractions. They are the cells' own; what leaves is decimal text.

// doubleText is the shortest decimal text that reads back to the same IEEE double, without an exponent: a cell that was
// typed in as 58.95 holds 58.950000000000003 and becomes "58.95" again. It says false for NaN and infinities.
func doubleText(bits uint64) (string, bool) {
	value := math.Float64frombits(bits)
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return "", false
	case value == 0:
		return "0", true // without the sign that a zero can have
	}
	return strconv.FormatFloat(value, 'f', -1, 64), true
}

// numberText is doubleText for a number in XML, which may have up to 17 digits and an exponent. It says false for what is no
// decimal number, hexadecimal digits and "Infinity" among it, and for what is beyond every double.
func numberText(text string) (string, bool) {
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return "", false
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "", false
	}
	return doubleText(math.Float64bits(value))
}

// The bits of an RK number, a short form in four bytes, that say how the other thirty are meant.
const (
	rkHundredths = 1 // divided by 100
	rkInteger    = 2 // a signed integer, otherwise the high bits of a double
)

// rkText is the text of an RK number. Hundredths are divided as decimals, so that 5029/100 is exactly 50.29.
func rkText(rk uint32) (string, bool) {
	var text string
	if rk&rkInteger != 0 {
		text = strconv.FormatInt(int64(int32(rk)>>2), 10)
	} else {
		var ok bool
		if text, ok = doubleText(uint64(rk&^(rkHundredths|rkInteger)) << 32); !ok {
			return "", false
		}
	}
	if rk&rkHundredths != 0 {
		text = divideBy100(text)
	}
	return text, true
}

// divideBy100 moves the decimal point of a decimal text two places to the left.
func divideBy100(text string) string {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	for len(whole) < 3 {
		whole = "0" + whole
	}
	cut := len(whole) - 2
	whole, fraction = whole[:cut], strings.TrimRight(whole[cut:]+fraction, "0")
	if fraction != "" {
		whole += "." + fraction
	}
	if negative {
		whole = "-" + whole
	}
	return whole
}

package workbook

import (
	"math"
	"strconv"
	"strings"
)

// Cells store numbers as IEEE doubles. This file turns them into decimal text; no other file has floating-point
// numbers.

// doubleText returns the shortest decimal text without an exponent that parses to the same IEEE double. For example,
// the double nearest to 58.95 is 58.950000000000003, and its text is "58.95". ok is false for NaN and infinities.
func doubleText(bits uint64) (text string, ok bool) {
	value := math.Float64frombits(bits)
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return "", false
	case value == 0:
		return "0", true // FormatFloat returns -0 for a negative zero
	}
	return strconv.FormatFloat(value, 'f', -1, 64), true
}

// numberText converts a number in XML, which may have 17 digits and an exponent, to the text of doubleText. It returns
// false for other texts, such as "0x1F" or "Infinity".
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

// Flags of an RK number. It has 32 bits: two flags and, above them, 30 bits of the number.
const (
	rkHundredths = 1 // the number must be divided by 100
	rkInteger    = 2 // the number is a signed integer; otherwise the high 30 bits of a double
)

// rkText returns an RK number as decimal text. It divides the text by 100, not the double, so that 5029/100 is exactly
// 50.29.
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

// divideBy100 divides a decimal text by 100: it moves the decimal point two places to the left.
func divideBy100(text string) string {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	for len(whole) < 3 {
		whole = "0" + whole
	}
	point := len(whole) - 2
	whole, fraction = whole[:point], strings.TrimRight(whole[point:]+fraction, "0")
	if fraction != "" {
		whole += "." + fraction
	}
	if negative {
		whole = "-" + whole
	}
	return whole
}

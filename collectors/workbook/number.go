package workbook

import (
	"math"
	"strconv"
	"strings"
)

// This is the only file with floating-point numbers, because numbers of cells are IEEE doubles. It returns them as
// decimal text.

// doubleText returns the shortest decimal text without an exponent that parses to the same IEEE double. A cell that was
// entered as 58.95 has the value 58.950000000000003, and its text is "58.95". ok is false for NaN and infinities.
func doubleText(bits uint64) (string, bool) {
	value := math.Float64frombits(bits)
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return "", false
	case value == 0:
		return "0", true // without the sign of a negative zero
	}
	return strconv.FormatFloat(value, 'f', -1, 64), true
}

// numberText returns the text of doubleText for a number in XML, which may have 17 digits and an exponent. ok is false
// for any other text, such as hexadecimal digits or "Infinity".
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

// The low two bits of an RK number, which has 32 bits, say how to read the other thirty.
const (
	rkHundredths = 1 // divide by 100
	rkInteger    = 2 // a signed integer; otherwise the high bits of a double
)

// rkText returns the text of an RK number. It divides in decimal, so that 5029/100 is exactly 50.29.
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

// divideBy100 moves the decimal point two places to the left.
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

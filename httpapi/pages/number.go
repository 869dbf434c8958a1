package pages

import (
	"strconv"
	"strings"
)

// formatFixed is value/scale with all its places; scale is 10^places.
func formatFixed(value, scale int64, places int) string {
	fraction := strconv.FormatInt(value%scale, 10)
	return strconv.FormatInt(value/scale, 10) + "." + strings.Repeat("0", places-len(fraction)) + fraction
}

// grouped is a decimal text with commas between thousands, as it is written in the Dominican Republic: 5,935.00.
func grouped(text string) string {
	whole, fraction, dotted := strings.Cut(text, ".")
	var out strings.Builder
	for i, digit := range []byte(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteByte(digit)
	}
	if dotted {
		out.WriteString("." + fraction)
	}
	return out.String()
}

// Grouped is a count with a comma between thousands.
func Grouped(n int) string { return grouped(strconv.Itoa(n)) }

// ungrouped takes the commas out of 1,234.50; any other text with commas stays as it is, to be refused.
func ungrouped(text string) string {
	whole, fraction, dotted := strings.Cut(text, ".")
	parts := strings.Split(whole, ",")
	for i, part := range parts {
		if i == 0 && (len(part) < 1 || len(part) > 3) || i > 0 && len(part) != 3 {
			return text
		}
	}
	if len(parts) == 1 {
		return text
	}
	whole = strings.Join(parts, "")
	if dotted {
		return whole + "." + fraction
	}
	return whole
}

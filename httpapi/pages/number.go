package pages

import (
	"strconv"
	"strings"
)

// formatFixed formats value/scale with all decimals. scale must be 10^places.
func formatFixed(value, scale int64, places int) string {
	fraction := strconv.FormatInt(value%scale, 10)
	return strconv.FormatInt(value/scale, 10) + "." + strings.Repeat("0", places-len(fraction)) + fraction
}

// grouped adds commas between thousands, as usual in the Dominican Republic: 5,935.00.
func grouped(text string) string {
	whole, fraction, hasPoint := strings.Cut(text, ".")
	var out strings.Builder
	for i, digit := range []byte(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteByte(digit)
	}
	if hasPoint {
		out.WriteString("." + fraction)
	}
	return out.String()
}

// Grouped formats a count with commas between thousands.
func Grouped(n int) string { return grouped(strconv.Itoa(n)) }

// ungrouped removes the commas between thousands. A single comma before one or two final digits is a decimal comma, as
// in 250,50. If a comma is anywhere else, ungrouped returns the text unchanged.
func ungrouped(text string) string {
	whole, fraction, hasPoint := strings.Cut(text, ".")
	parts := strings.Split(whole, ",")
	if last := len(parts[len(parts)-1]); len(parts) == 2 && !hasPoint && parts[0] != "" && (last == 1 || last == 2) {
		return parts[0] + "." + parts[1]
	}
	for i, part := range parts {
		if i == 0 && (len(part) < 1 || len(part) > 3) || i > 0 && len(part) != 3 {
			return text
		}
	}
	if len(parts) == 1 {
		return text
	}
	whole = strings.Join(parts, "")
	if hasPoint {
		return whole + "." + fraction
	}
	return whole
}

package pages

import (
	"regexp"
	"strconv"
	"strings"
)

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

var (
	groupedPattern      = regexp.MustCompile(`^[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?$`)
	decimalCommaPattern = regexp.MustCompile(`^[0-9]+,[0-9]{1,2}$`)
)

// ungrouped removes the commas between thousands. It replaces a decimal comma (a single comma before one or two final
// digits, as in 250,50) by a point. If a comma is anywhere else, ungrouped returns the text unchanged.
func ungrouped(text string) string {
	switch {
	case groupedPattern.MatchString(text):
		return strings.ReplaceAll(text, ",", "")
	case decimalCommaPattern.MatchString(text):
		return strings.Replace(text, ",", ".", 1)
	}
	return text
}

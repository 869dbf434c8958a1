package source

import (
	"fmt"
	"strings"
	"testing"
)

// Pages that only an attack can mean are refused before selectors and patterns go through them.
func TestHTML_Limits(t *testing.T) {
	fields := sourceOf(Extract{Method: HTMLFields, Fields: []Field{{Side: BuySide, Place: Place{At: "b:nth-child(2)", Pattern: `[0-9.]+`}}}})
	everywhere := sourceOf(Extract{Method: HTMLFields, Fields: []Field{
		{Side: BuySide, Place: Place{At: "b", Pattern: `x`}}, {Side: SellSide, Place: Place{At: "b", Pattern: `y`}},
	}})
	text := sourceOf(Extract{Method: TextRegex, Text: &Text{At: "body", Pattern: `(?P<buy>[0-9.]+)`}})
	plain := sourceOf(Extract{Method: TextRegex, Text: &Text{Pattern: `(?P<buy>[0-9.]+)`}})
	block := "<div>" + strings.Repeat("<p>", childrenMax/2) + "</div>"
	for _, c := range []struct {
		name, document string
		source         *Definition
		detail         string
	}{
		{"parts of one element", pageOf(strings.Repeat("<p></p>", childrenMax+1)), fields, "make a page"},
		{"elements", pageOf(strings.Repeat(block, nodesMax/(childrenMax/2)+1)), fields, "more than 100000 elements"},
		{"tags", pageOf(strings.Repeat("</p>", tagsMax+1)), fields, "tags"},
		{"text at a place", pageOf("<p></p><b>" + strings.Repeat("58.90", patternBytesMax/5+1) + "</b>"), fields, "are searched"},
		{"text", pageOf(strings.Repeat("58.90", patternBytesMax/5+1)), text, "are searched"},
		{"plain text", strings.Repeat("58.90", patternBytesMax/5+1), plain, "are searched"},
		{"nesting", pageOf(strings.Repeat("<div>", 400) + strings.Repeat("<i></i>", 40_000)), fields, "inside of others"},
		{"depth", pageOf(strings.Repeat("<div>", 300) + strings.Repeat("<i></i>", 9_000)), fields, "nested so deeply"},
		{"attributes", pageOf("<div class=\"" + strings.Repeat("a ", 1<<20) + "\"><p>" + strings.Repeat("<i></i>", 9_000)), fields, "attributes are so long"},
		{"searches", pageOf(strings.Repeat("<b>"+strings.Repeat(".", 1<<20-1)+"</b>", 5)), everywhere, "bytes to search"},
		{"quotes", strings.Join(numbers(quotesOfDay+1), " "), plain, "more than 500 quotes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if RaceDetector && len(c.document) > 1<<20 {
				t.Skip("one goroutine reads it all: without the race detector")
			}
			_, err := c.source.Parse(0, documentOf(c.document))
			wantFailure(t, err, WrongContent, c.detail)
		})
	}
	good := pageOf(strings.Repeat(block, 15) + "<div><i></i><b>58.90</b></div>")
	checkCase(t, fields, documentOf(good), parseCase{want: []string{"test USD unspecified [58.90] []"}})
}

// numbers are so many different ones.
func numbers(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("58.%04d", i)
	}
	return texts
}

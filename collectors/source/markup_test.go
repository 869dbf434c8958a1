package source

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"
)

// formats are so many different formatting elements that nobody closes.
func formats(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<b a%d>", i)
	}
	return b.String()
}

// A small page that would become millions of elements is refused before it is taken apart; a careless one is not.
func TestMarkup_Cost(t *testing.T) {
	const ends = 400
	many := strings.Repeat("<p>x", 5000)
	for name, page := range map[string]string{
		"never closed":        formats(ends) + many,
		"closed in a cell":    formats(ends) + "<table><td>" + strings.Repeat("</b>", ends) + "</table>" + many,
		"closed in a select":  formats(ends) + "<select>" + strings.Repeat("</b>", ends) + "</select>" + many,
		"closed in a drawing": formats(ends) + "<svg><desc>" + strings.Repeat("</b>", ends) + "</desc></svg>" + many,
		"opened in a style":   "<svg><style>" + formats(ends) + many,
	} {
		if !isCostlyMarkup(page) {
			t.Errorf("%s is taken", name)
		}
	}
	for name, page := range map[string]string{
		"closed":         strings.Repeat("<p><b class=a><i>x</i></b><strong>y</strong>", 10_000),
		"careless":       strings.Repeat("<tr><td><font color=red><b>x<td><p><i>y", 2_000),
		"careless cells": "<table>" + strings.Repeat("<tr><td><font color=red><b>x</td><td>y</td></tr>", 5_000) + "</table>",
		"a script":       "<script>" + strings.Repeat("if(a<b&&c<i)d<u;", 1_000) + "</script>" + many,
	} {
		if isCostlyMarkup(page) {
			t.Errorf("%s is refused", name)
		}
	}
}

// Whatever the elements are, a page that is cheap by the count becomes no more than that many nodes.
func TestMarkup_CountsEnough(t *testing.T) {
	tags := []string{
		"<b 1>", "<b 2>", "<b 3>", "<i 1>", "<i 2>", "</b>", "</i>", "<p>", "</p>", "x", "<table>", "</table>", "<td>", "</td>", "<tr>", "</tr>",
		"<select>", "</select>", "<option>", "<a 1>", "</a>", "<div>", "</div>", "<object>", "</object>", "<caption>", "</caption>", "<input>",
	}
	rapid.Check(t, func(t *rapid.T) {
		page := strings.Join(rapid.SliceOfN(rapid.SampledFrom(tags), 0, 300).Draw(t, "page"), "")
		tree, err := html.Parse(strings.NewReader(page))
		if err != nil {
			return
		}
		nodes := 0
		for range tree.Descendants() {
			nodes++
		}
		if cost := markupCost(page, false); nodes > 10+4*cost {
			t.Fatalf("%d nodes, counted as %d", nodes, cost)
		}
	})
}

// TestD4_Markup: Parse says so, and so does the search for an address.
func TestD4_Markup(t *testing.T) {
	document := documentOf(pageOf(formats(400) + strings.Repeat("<p>58.90", 50_000)))
	_, err := oneField().Parse(0, document)
	wantFailure(t, err, WrongContent, "attack")
	if _, err := AttributeOf(document, "p", "a"); err == nil {
		t.Error("the page is searched for an address")
	}
}

package markup

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"
)

// Two numbers on a page never become one.
func TestI3_VisibleText(t *testing.T) {
	for want, texts := range map[string][]string{
		"58.90 1":     {`58.90<sup>1</sup>`, `58.90<a href="#nota">1</a>`},
		"58 90":       {`58<sup>90</sup>`, `58&nbsp;90`, `58&#8203;90`},
		"58.90 59.30": {`<span>58.90</span><span>59.30</span>`, `58.90<br>59.30`},
		"58.9 0":      {`58.9<small>0</small>`},
		"58.90": {
			`<b>58</b>.90`, `<strong>58.</strong><em>90</em>`, `58.90<script>12</script>`, `58.90<style>p{width:10px}</style>`, `58.90<!-- 12 -->`,
			`58.90<noscript>12</noscript>`, `<span style="color:red; Display : none">57.90</span>58.90`, `<del>57.90</del> <s>57.95</s> 58.90`,
			`<template>57.90</template>58.90`, `5&#56;.90`,
		},
		"": {`<span hidden>58.90</span>`},
	} {
		for _, text := range texts {
			document, err := Parse("<div id=x>" + text + "</div>")
			if err != nil {
				t.Fatal(err)
			}
			if got := VisibleText(Find(document, "#x")[0]); got != want {
				t.Errorf("the text of %s is %q, want %q", text, got, want)
			}
		}
	}
}

// A small page that would become millions of elements is rejected before it is parsed; a careless page is not.
func TestMarkup_Cost(t *testing.T) {
	const ends = 400
	formats := ""
	for i := range ends {
		formats += fmt.Sprintf("<b a%d>", i)
	}
	many := strings.Repeat("<p>x", 5000)
	for name, page := range map[string]string{
		"never closed":        formats + many,
		"closed in a cell":    formats + "<table><td>" + strings.Repeat("</b>", ends) + "</table>" + many,
		"closed in a select":  formats + "<select>" + strings.Repeat("</b>", ends) + "</select>" + many,
		"closed in a drawing": formats + "<svg><desc>" + strings.Repeat("</b>", ends) + "</desc></svg>" + many,
		"opened in a style":   "<svg><style>" + formats + many,
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

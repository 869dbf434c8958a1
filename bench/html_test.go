package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"
)

func TestHTML_KeepsItsPromises(t *testing.T) {
	r := sampleReport()
	page := written(t, r.writeHTML)
	for _, problem := range pageProblems(page) {
		t.Error(problem)
	}
	text := textOf(t, page)
	for _, want := range []string{"AMD EPYC 7B13", "4f2a9c1d7b3e with changes that are not committed", "9 of 12 bounds met, 2 not measured",
		"short: 1.15 of 1.12; half of the difference", `F7, PostgreSQL <9.4 & "older"`, "node at 12,000/s", "6.1.0-44-cloud-amd64"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, g := range r.Goals {
		if !strings.Contains(text, g.ID) || !strings.Contains(text, g.Title) || !strings.Contains(page, `id="goal_`+g.ID+`"`) {
			t.Errorf("goal %s is not on the page", g.ID)
		}
		for _, m := range g.Measures {
			if strings.Count(text, m.Name) < 3 { // beside the bar, in its title, in the table
				t.Errorf("%s: %q is %d times on the page", g.ID, m.Name, strings.Count(text, m.Name))
			}
		}
	}
}

func TestHTML_OfAnyReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyReport(t)
		for i := range r.Goals { // words that look like an address may be in a report; the page must make no reference of them
			r.Goals[i].Title += " //example.com/"
		}
		var out bytes.Buffer
		if err := r.writeHTML(&out); err != nil {
			t.Fatal(err)
		}
		for _, problem := range pageProblems(out.String()) {
			t.Error(problem)
		}
		if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "ZgotmplZ") {
			t.Error("a place could not be worked out")
		}
	})
}

func TestHTML_ControlProblems(t *testing.T) {
	page := written(t, sampleReport().writeHTML)
	for planted, want := range map[string]string{
		`<script src="x.js"></script>`:                        "script",
		`<img src="logo.png">`:                                "logo.png",
		`<a href="http://example.com/">x</a>`:                 "http://example.com/",
		`<link rel="stylesheet" href="//example.com/a">`:      "//example.com/a",
		`<p onclick="x()">x</p>`:                              "onclick",
		`<style>@import "x.css";</style>`:                     "@import",
		`<p style="background: url(x.png)">x</p>`:             "url(x.png)",
		`<p id="short">x</p>`:                                 "twice",
		`<p aria-labelledby="nobody">x</p>`:                   "nobody",
		`<a href="#nowhere">x</a>`:                            "nowhere",
		`<svg role="img"><rect/></svg>`:                       "title",
		`<svg><rect/></svg>`:                                  "neither",
		`<table><tr><td>1</td></tr></table>`:                  "scope",
		`<div><p>x</div>`:                                     "</div>",
		`<div>`:                                               "not closed",
		`<svg aria-hidden="true"><g></svg>`:                   "</svg>",
		`<svg aria-hidden="true"><use href="a.svg#b"/></svg>`: "a.svg#b",
	} {
		problems := pageProblems(strings.Replace(page, "</main>", planted+"</main>", 1))
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("planted %q is not reported as %q; reported: %q", planted, want, problems)
		}
	}
}

// pageChecker walks a page and collects what breaks a promise.
type pageChecker struct {
	problems []string
	open     []string
	ids      map[string]bool
	wanted   []string // ids that something refers to
}

func pageProblems(page string) []string {
	c := &pageChecker{ids: map[string]bool{}}
	if at := strings.Index(strings.ToLower(page), "<!doctype html>"); at != 0 {
		c.report("the page does not begin with its type")
	}
	tokens := html.NewTokenizer(strings.NewReader(page))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			if err := tokens.Err(); !errors.Is(err, io.EOF) {
				c.report("%v", err)
			}
			break
		}
		c.token(tokens.Token())
	}
	if len(c.open) > 0 {
		c.report("not closed: %q", c.open)
	}
	for _, id := range c.wanted {
		if !c.ids[id] {
			c.report("there is no element %q", id)
		}
	}
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		c.report("%v", err)
		return c.problems
	}
	c.structure(root)
	return c.problems
}

func (c *pageChecker) report(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *pageChecker) token(token html.Token) {
	switch token.Type {
	case html.StartTagToken, html.SelfClosingTagToken:
		if token.Data == "script" || token.Data == "iframe" || token.Data == "object" {
			c.report("a %s", token.Data)
		}
		for _, a := range token.Attr {
			c.attribute(token.Data, a)
		}
		void := slices.Contains([]string{"meta", "link", "br", "img", "hr"}, token.Data)
		if token.Type == html.StartTagToken && !void {
			c.open = append(c.open, token.Data)
		}
	case html.EndTagToken:
		if last := len(c.open) - 1; last >= 0 && c.open[last] == token.Data {
			c.open = c.open[:last]
		} else {
			c.report("</%s> within %q", token.Data, c.open)
		}
	case html.TextToken:
		if len(c.open) > 0 && c.open[len(c.open)-1] == "style" {
			c.style(token.Data)
		}
	}
}

func (c *pageChecker) attribute(tag string, a html.Attribute) {
	switch {
	case strings.HasPrefix(a.Key, "on"):
		c.report("%s of %s is a script", a.Key, tag)
	case a.Key == "id":
		if c.ids[a.Val] {
			c.report("id %q is there twice", a.Val)
		}
		c.ids[a.Val] = true
	case a.Key == "aria-labelledby":
		c.wanted = append(c.wanted, strings.Fields(a.Val)...)
	case slices.Contains([]string{"href", "src", "srcset", "action", "data", "poster", "xlink:href", "xmlns"}, a.Key):
		if coded, inside := strings.CutPrefix(a.Val, "#"); inside {
			id, err := url.PathUnescape(coded)
			if err != nil {
				c.report("%v", err)
			}
			c.wanted = append(c.wanted, id)
		} else if a.Val != "data:," {
			c.report("%s of %s leads out of the page: %s", a.Key, tag, a.Val)
		}
	case a.Key == "style":
		c.style(a.Val)
	}
}

func (c *pageChecker) style(text string) {
	if strings.Contains(text, "@import") {
		c.report("the style has an @import")
	}
	for _, match := range regexp.MustCompile(`url\(([^)]*)\)`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(match[1], "#") {
			c.report("the style leads out of the page: %s", match[0])
		}
	}
	if strings.Contains(text, "http://") || strings.Contains(text, "https://") {
		c.report("the style has an address")
	}
}

// structure holds what readers who do not see the page need.
func (c *pageChecker) structure(node *html.Node) {
	if node.Type == html.ElementNode {
		switch node.Data {
		case "svg":
			c.drawing(node)
		case "th":
			if attribute(node, "scope") == "" {
				c.report("a th without scope")
			}
		case "table":
			if len(elements(node, "th")) == 0 {
				c.report("a table without th and scope")
			}
		case "html":
			if attribute(node, "lang") != "en" {
				c.report("the page does not say that it is in English")
			}
		}
	}
	for child := node.FirstChild; child != nil; child = child.NextSibling {
		c.structure(child)
	}
}

// drawing: a picture says what it shows, another one is hidden, as are parts of either.
func (c *pageChecker) drawing(svg *html.Node) {
	for above := svg.Parent; above != nil; above = above.Parent {
		if above.Data == "svg" {
			return
		}
	}
	hidden := attribute(svg, "aria-hidden") == "true"
	for above := svg.Parent; above != nil; above = above.Parent {
		hidden = hidden || attribute(above, "aria-hidden") == "true"
	}
	switch {
	case attribute(svg, "role") == "img":
		if len(elements(svg, "title")) == 0 || len(elements(svg, "desc")) == 0 || attribute(svg, "aria-labelledby") == "" {
			c.report("a picture without title, desc or the reference to them")
		}
	case !hidden:
		c.report("an svg is neither a picture nor hidden")
	}
}

func attribute(node *html.Node, key string) string {
	for _, a := range node.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func elements(node *html.Node, name string) []*html.Node {
	var found []*html.Node
	for below := range node.Descendants() {
		if below.Type == html.ElementNode && below.Data == name {
			found = append(found, below)
		}
	}
	return found
}

// textOf is what a reader gets to see or hear.
func textOf(t *testing.T, page string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for node := range root.Descendants() {
		if node.Type == html.TextNode && node.Parent.Data != "style" {
			text.WriteString(node.Data)
		}
	}
	return text.String()
}

func TestHTML_NoAddressInTheTemplate(t *testing.T) {
	for _, page := range []string{htmlSource, written(t, sampleReport().writeHTML)} {
		if found := regexp.MustCompile(`(?i)https?://|<script|\burl\((["'h/])`).FindString(page); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
}

// TestHTML_Contrast holds the colours against WCAG 2: 4.5 for text, 3 for what is drawn.
func TestHTML_Contrast(t *testing.T) {
	const text, drawn = 4.5, 3.0
	for scheme, colours := range schemes(t, htmlSource) {
		for _, tt := range []struct {
			front, back string
			least       float64
		}{
			{"ink", "paper", text}, {"ink", "card", text}, {"soft", "paper", text}, {"soft", "card", text}, {"link", "card", text},
			{"met", "card", text}, {"short", "card", text}, {"free", "card", text},
			{"met", "track", drawn}, {"met", "zone", drawn}, {"short", "track", drawn}, {"short", "zone", drawn}, {"free", "track", drawn},
			{"ink", "track", drawn}, {"ink", "zone", drawn},
			{"c1", "card", drawn}, {"c2", "card", drawn}, {"c3", "card", drawn}, {"c4", "card", drawn}, {"c5", "card", drawn}, {"c6", "card", drawn},
		} {
			if got := contrast(colours[tt.front], colours[tt.back]); got < tt.least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", scheme, tt.front, tt.back, got, tt.least)
			}
		}
	}
}

func TestHTML_ControlContrast(t *testing.T) {
	white, black, grey := [3]float64{255, 255, 255}, [3]float64{}, [3]float64{0x77, 0x77, 0x77}
	if got := contrast(black, white); math.Abs(got-21) > 0.01 {
		t.Errorf("black on white: %.2f, want 21", got)
	}
	if got := contrast(grey, white); math.Abs(got-4.48) > 0.01 {
		t.Errorf("#777 on white: %.2f, want 4.48", got)
	}
}

// schemes are the colours of the light and of the dark page.
func schemes(t *testing.T, page string) map[string]map[string][3]float64 {
	t.Helper()
	blocks := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks of colours, want a light and a dark one", len(blocks))
	}
	found := map[string]map[string][3]float64{}
	for i, name := range []string{"light", "dark"} {
		found[name] = map[string][3]float64{}
		for _, match := range regexp.MustCompile(`--(\w+): #(\w{6})`).FindAllStringSubmatch(blocks[i][1], -1) {
			bits, err := strconv.ParseUint(match[2], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			found[name][match[1]] = [3]float64{float64(bits >> 16), float64(bits >> 8 & 255), float64(bits & 255)}
		}
		if len(found[name]) < 17 {
			t.Fatalf("the %s page has %d colours", name, len(found[name]))
		}
	}
	return found
}

func contrast(front, back [3]float64) float64 {
	light := func(colour [3]float64) float64 {
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			v := colour[i] / 255
			if v <= 0.04045 {
				sum += weight * v / 12.92
			} else {
				sum += weight * math.Pow((v+0.055)/1.055, 2.4)
			}
		}
		return sum + 0.05
	}
	a, b := light(front), light(back)
	return max(a, b) / min(a, b)
}

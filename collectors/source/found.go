package source

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/values"
)

// Limits of what a failure names.
const (
	pricesFoundMax = 4       // prices on the page
	keysFoundMax   = 8       // keys of an object
	foundBytesMax  = 64      // bytes; longer texts are prose
	documentMax    = 1 << 20 // bytes; a larger page is not read a second time
	textsTriedMax  = 2000    // texts with digits; a page with prices has few before them
)

// found says what stands in a document in which no price was found where the definition expects one: for the person who
// repairs the definition. It returns "" if there is nothing to say.
func (r *parser) found(doc *Document) (text string) {
	failure := catchFailure(func() {
		switch r.page.Extract.Method {
		case JSONFields, JSONRows:
			text = r.foundInJSON(parseJSON(decodeText(doc)))
		case HTMLFields, HTMLRows, TextRegex:
			if len(doc.Body) <= documentMax {
				text = r.foundInHTML(parseHTML(decodeText(doc)))
			}
		case XLSXRows:
		}
	})
	if failure != nil {
		return ""
	}
	return text
}

// foundInHTML names the page and the elements in which prices stand now.
func (r *parser) foundInHTML(document *html.Node) string {
	page := "the page has"
	if titles := markup.Find(document, "title"); len(titles) > 0 {
		title, _ := markup.Text(titles[0], "")
		page = "the page " + quoted(title) + " has"
	}
	var prices []string
	tried := 0
	for node := range document.Descendants() {
		text, element := node.Data, node.Parent
		if node.Type == html.ElementNode {
			text, _ = markup.Text(node, "value")
			element = node
		}
		if node.Type != html.TextNode && text == "" || !mayBePrice(text) || markup.IsInvisible(element) {
			continue
		}
		if tried++; tried > textsTriedMax {
			break
		}
		if !r.isPlausible(text) {
			continue
		}
		if price := values.CollapseSpaces(text) + " at " + markup.Describe(element); !slices.Contains(prices, price) {
			prices = append(prices, price)
		}
		if len(prices) == pricesFoundMax {
			break
		}
	}
	if len(prices) == 0 {
		return page + " no price in its text; a script may fill it"
	}
	return page + " " + strings.Join(prices, ", ")
}

// mayBePrice is a quick test, because most texts of a page have no digit.
func mayBePrice(text string) bool {
	return len(text) <= foundBytesMax && strings.ContainsAny(text, "0123456789")
}

// isPlausible reports whether a text is a price with a fraction from 20 to 200 pesos, as those of the currencies that
// banks buy and sell are.
func (r *parser) isPlausible(text string) bool {
	price, err := values.ParsePrice(text, r.source.Decimal, r.source.DecimalsMax)
	whole, _, hasFraction := strings.Cut(price, ".")
	pesos, _ := strconv.Atoi(whole)
	return err == nil && hasFraction && pesos >= 20 && pesos < 200
}

// foundInJSON names what stands at the deepest existing part of the first path without a value.
func (r *parser) foundInJSON(whole *jsonValue) string {
	for _, path := range r.page.Extract.paths() {
		if whole.lookup(path) != nil {
			continue
		}
		parts := strings.Split(path, ".")
		for len(parts) > 0 && whole.lookup(strings.Join(parts, ".")) == nil {
			parts = parts[:len(parts)-1]
		}
		at := strings.Join(parts, ".")
		return fmt.Sprintf("%s is %s", quotedOr(at, "the document"), whole.lookup(at).contents())
	}
	return ""
}

// paths returns the paths in the whole document that the definition names, in the order of their use.
func (e *Extract) paths() (paths []string) {
	for _, expected := range e.Expect {
		paths = append(paths, expected.Path)
	}
	if e.Date != nil {
		paths = append(paths, e.Date.At)
	}
	for i := range e.Fields {
		paths = append(paths, e.Fields[i].At)
	}
	if e.Rows != nil {
		paths = append(paths, e.Rows.At)
	}
	return paths
}

// contents describes a value by its keys, its length or its text.
func (v *jsonValue) contents() string {
	switch v.kind {
	case jsonArray:
		return fmt.Sprintf("a list of %d entries", len(v.items))
	case jsonObject:
		var keys []string
		for _, member := range v.members[:min(len(v.members), keysFoundMax)] {
			keys = append(keys, quoted(member.key))
		}
		return "an object with the keys " + strings.Join(keys, ", ")
	}
	return string(v.kind) + " " + quoted(v.text)
}

func quotedOr(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return quoted(text)
}

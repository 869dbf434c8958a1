package suggest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/values"
)

func (f *finder) readHTML(text string) {
	if f.document, f.problem = markup.Parse(text); f.problem != nil {
		return
	}
	for _, body := range markup.Find(f.document, "body") {
		f.read(body)
	}
	for _, script := range markup.Find(f.document, "script") {
		text, _ := markup.Text(script, "")
		f.readScript(text)
	}
}

// read adds the prices in a node, and sets their sides and currencies by the words around them.
func (f *finder) read(root *html.Node) {
	before := len(f.spots)
	f.walk(root)
	for _, s := range f.spots[before:] {
		if s.isNoise = f.hasNoise(s); !s.isNoise {
			f.takeWord(s, values.AboutSide)
			f.takeWord(s, values.AboutCurrency)
		}
	}
}

// walk adds the tokens of a node. Its recursion is bounded, because the HTML parser limits the depth of a document.
func (f *finder) walk(node *html.Node) {
	start := len(f.stream)
	defer func() { f.spans[node] = [2]int{start, len(f.stream)} }()
	switch {
	case node.Type == html.TextNode && isJSON(node.Parent):
		f.readJSONText(node.Parent, node.Data)
	case node.Type == html.TextNode:
		f.readText(node)
	case markup.IsInvisible(node) || markup.IsStruckOut(node):
		return
	}
	for _, attr := range node.Attr {
		isInput := attr.Key == "value" && node.DataAtom == atom.Input
		if !isInput && !strings.HasPrefix(attr.Key, "data-") || !strings.ContainsAny(attr.Val, "0123456789") {
			continue
		}
		if s := f.add(node, attr.Key, attr.Val); s != nil && isInput {
			f.stream = append(f.stream, token{spot: s})
		}
	}
	for child := range node.ChildNodes() {
		f.walk(child)
	}
}

// numberPattern matches a number with decimals. A whole number in a text is hardly ever a price, or its decimals are in
// another element.
var numberPattern = regexp.MustCompile(`[0-9]+(?:[.,][0-9]+)+`)

// behindPart matches the text after a number that is part of something else: a range, a percentage, a word or a script.
var behindPart = regexp.MustCompile(`^(?:\s?[-–]\s?[0-9]|['’´%/:\pL])`)

// numbersMax limits the numbers that are read from one text, and the attempts to find JSON in one script.
const numbersMax = 50

// readText adds the words and prices of a text.
func (f *finder) readText(node *html.Node) {
	text, position := values.CollapseSpaces(node.Data), 0
	for _, at := range numberPattern.FindAllStringIndex(text, numbersMax) {
		if behindPart.MatchString(text[at[1]:min(len(text), at[1]+8)]) {
			continue
		}
		f.addWords(text[position:at[0]])
		if s := f.add(node.Parent, "", text[at[0]:at[1]]); s != nil {
			f.stream = append(f.stream, token{spot: s})
		}
		position = at[1]
	}
	f.addWords(text[position:])
}

func (f *finder) addWords(text string) {
	for _, w := range values.Words(text) {
		f.stream = append(f.stream, token{word: w})
	}
}

// readScript adds the prices in the JSON values of a script, if words in the JSON name their currency and side.
func (f *finder) readScript(text string) {
	for range numbersMax {
		start := strings.IndexAny(text, "{[")
		if start < 0 {
			return
		}
		text = text[start:]
		decoder := json.NewDecoder(strings.NewReader(text))
		var whole json.RawMessage
		if decoder.Decode(&whole) != nil {
			text = text[1:]
			continue
		}
		before := len(f.spots)
		f.addJSON(string(whole))
		named := slices.DeleteFunc(f.spots[before:], func(s *spot) bool { return !s.isNamed() })
		for _, s := range named {
			s.inScript = true
		}
		f.spots = f.spots[:before+len(named)]
		text = text[decoder.InputOffset():]
	}
}

package suggest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
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

// Names of elements. finder turns each value of a JSON document into an element, with the value's key as its id.
const (
	listValue   = "JSON list" // no HTML element has such a name
	numberValue = "JSON number"
	otherValue  = "JSON value"

	depthMax  = 64  // nesting of JSON values; the work for a value grows with its depth
	memberMax = 200 // size of a text that may be a label
)

func isJSON(node *html.Node) bool { return strings.HasPrefix(node.Data, "JSON ") }

// codesOfNumbers are the numbers of currencies in ISO 4217, which some services use.
var codesOfNumbers = map[string]string{"840": "USD", "978": "EUR", "826": "GBP", "756": "CHF", "124": "CAD"}

// addJSON adds the prices of a JSON text, with their words.
func (f *finder) addJSON(text string) (root *html.Node) {
	if root = nodeOf(gjson.Parse(text), "", depthMax); root == nil {
		f.problem = fmt.Errorf("the JSON is nested deeper than %d", depthMax)
		return nil
	}
	f.read(root)
	return root
}

// nodeOf returns nil if the value is too deep.
func nodeOf(result gjson.Result, key string, depth int) *html.Node {
	node, text := &html.Node{Type: html.ElementNode, Data: otherValue, Attr: []html.Attribute{{Key: "id", Val: key}}}, ""
	switch {
	case depth == 0:
		return nil
	case result.IsArray():
		node.Data = listValue
	case result.Type == gjson.Number:
		node.Data, text = numberValue, result.Raw
	case result.Type == gjson.String:
		text = result.String()
	}
	if result.Type != gjson.JSON {
		node.AppendChild(&html.Node{Type: html.TextNode, Data: text})
		return node
	}
	result.ForEach(func(key, item gjson.Result) bool {
		inner := nodeOf(item, key.String(), depth-1)
		if inner == nil {
			node = nil
			return false
		}
		node.AppendChild(inner)
		return true
	})
	return node
}

// readJSONText adds a JSON value to the stream: as a currency code, as a price, or as the words in a text.
func (f *finder) readJSONText(value *html.Node, text string) {
	s, code := f.add(value, "", text), codesOfNumbers[text]
	switch {
	case code != "":
		f.stream = append(f.stream, token{word: values.Word{Topic: values.AboutCurrency, Meaning: code, Text: text}})
	case s != nil:
		f.stream = append(f.stream, token{spot: s})
	case len(text) <= memberMax:
		f.addWords(text)
	}
}

func keyOf(node *html.Node) string {
	key, _ := markup.Text(node, "id")
	return key
}

// jsonText returns the text of a string or a number, otherwise "".
func jsonText(node *html.Node) string {
	if text := node.FirstChild; text != nil && text.Type == html.TextNode {
		return text.Data
	}
	return ""
}

// pathOf returns the path of a value from another value (nil = the document), as in a definition. [] means the only
// entry of a list. isOfSeveral means that the path goes through a list of several entries.
func pathOf(node, below *html.Node) (path string, isOfSeveral bool) {
	for ; node != below && node.Parent != nil; node = node.Parent {
		if node.Parent.Data != listValue {
			path = "." + keyOf(node) + path
			continue
		}
		if node.PrevSibling == nil && node.NextSibling == nil {
			path = "[]" + path
			continue
		}
		index := slices.Index(slices.Collect(node.Parent.ChildNodes()), node)
		path, isOfSeveral = fmt.Sprintf("[%d]", index)+path, true
	}
	return strings.TrimPrefix(path, "."), isOfSeveral
}

// jsonRow returns the entry of the outermost list around a finding. ok is false if the entry lacks a label.
func jsonRow(f *Finding) (r row, ok bool) {
	var entry *html.Node
	for node := f.at.node; node.Parent != nil; node = node.Parent {
		if node.Parent.Data == listValue {
			entry = node
		}
	}
	if entry == nil {
		return row{}, false
	}
	label := labelOf(entry, f.Currency)
	r.at, _ = pathOf(entry.Parent, nil)
	r.price.At, _ = pathOf(f.at.node, entry)
	if label == nil || r.price.At == "" {
		return row{}, false
	}
	r.label.At, r.text = keyOf(label), jsonText(label)
	return r, true
}

// labelOf returns the first text in an entry that names a currency, or nil.
func labelOf(entry *html.Node, currency string) *html.Node {
	for member := range entry.ChildNodes() {
		text := jsonText(member)
		word, _ := only(values.Words(text), values.AboutCurrency)
		if (word.Meaning == currency || codesOfNumbers[text] == currency) && !strings.Contains(text, "\n") {
			return member
		}
	}
	return nil
}

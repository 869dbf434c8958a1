package suggest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"golang.org/x/net/html"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/values"
)

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

package suggest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"golang.org/x/net/html"

	"github.com/tasard/tasard/collectors/markup"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/collectors/values"
)

// A JSON document is read as a page: an element for each value, with its key as id, and a text in it.
const (
	listValue   = "list"
	numberValue = "number"
	otherValue  = "value"

	depthMax  = 64  // of JSON; a value is read once for each value around it
	memberMax = 200 // size of a text that may be a label
)

// codesOfNumbers are the numbers of currencies in ISO 4217, which some services use.
var codesOfNumbers = map[string]string{"840": "USD", "978": "EUR", "826": "GBP", "756": "CHF", "124": "CAD"}

// readJSON adds the prices of a JSON document.
func (f *finder) readJSON(text string) error {
	var whole json.RawMessage
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		return fmt.Errorf("the JSON can't be read: %w", err)
	}
	f.page = newPage(f, nil)
	root, _, err := f.page.addJSON(text)
	f.json = root
	return err
}

// addJSON adds the prices of a JSON text, with their words.
func (p *page) addJSON(text string) (root *html.Node, added []*spot, err error) {
	if root = nodeOf(gjson.Parse(text), "", depthMax); root == nil {
		return nil, nil, fmt.Errorf("the JSON is nested deeper than %d", depthMax)
	}
	before := len(p.spots)
	p.isJSON = true
	defer func() { p.isJSON = false }()
	if err := p.walk(root, false); err != nil {
		return nil, nil, err
	}
	for _, s := range p.spots[before:] {
		s.isJSON, s.isNoise = true, p.hasNoiseAround(s.node)
		p.label(s)
		if s.isNoise {
			delete(s.words, values.AboutSide)
		}
	}
	return root, p.spots[before:], nil
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

// readJSONText adds the price that a JSON value is, or its words.
func (p *page) readJSONText(value *html.Node, text string) error {
	s, err := p.add(&spot{text: text, node: value}, value.Data == numberValue)
	switch {
	case err != nil:
		return err
	case codesOfNumbers[text] != "":
		p.stream = append(p.stream, token{word: values.Word{Topic: values.AboutCurrency, Meaning: codesOfNumbers[text], Text: text}})
	case s != nil:
		p.stream = append(p.stream, token{spot: s})
	case len(text) <= memberMax:
		for _, w := range values.Words(text) {
			p.stream = append(p.stream, token{word: w})
		}
	}
	return nil
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

// hasNoiseAround reports whether a key around a JSON value, or a text beside it or them, says that it is not a rate of
// today.
func (p *page) hasNoiseAround(node *html.Node) bool {
	for ; node != nil; node = node.Parent {
		if has(values.Words(keyOf(node)), values.AboutOther) {
			return true
		}
		for beside := range node.ChildNodes() {
			if text := jsonText(beside); len(text) <= memberMax && !strings.Contains(text, ":") && has(values.Words(text), values.AboutOther) {
				return true
			}
		}
	}
	return false
}

// pathOf returns the path of a value below another one (nil = the document) as definitions write it. [] is the only
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

func (s *suggester) jsonFields() *source.Extract {
	e := &source.Extract{Method: source.JSONFields}
	for _, f := range s.found {
		path, isOfSeveral := pathOf(f.at.node, nil)
		if isOfSeveral {
			return nil // the place in a list may change
		}
		e.Fields = append(e.Fields, f.field(source.Locator{At: path}))
	}
	return e
}

// jsonRows reads a list whose entries are named by a text in them.
func (s *suggester) jsonRows() *source.Extract {
	rows := &source.Rows{Labels: source.Labels{}}
	at, sided := map[source.Side]*source.Locator{}, source.Labels{}
	for i, f := range s.found {
		var entry *html.Node // of the outermost list
		for node := f.at.node; node.Parent != nil; node = node.Parent {
			if node.Parent.Data == listValue {
				entry = node
			}
		}
		if entry == nil {
			return nil
		}
		list, _ := pathOf(entry.Parent, nil)
		path, _ := pathOf(f.at.node, entry)
		within, label := source.Locator{At: path}, labelOf(entry, &f, rows.Label.At)
		if label == nil || path == "" || i > 0 && rows.At != list || at[f.Side] != nil && *at[f.Side] != within {
			return nil
		}
		rows.At, at[f.Side], rows.Label.At = list, &within, keyOf(label)
		rows.Labels[jsonText(label)] = f.target()
		sided[jsonText(label)] = source.Target{Currency: f.Currency, Side: f.Side, Channel: f.Channel}
	}
	rows.Buy, rows.Sell = at[source.BuySide], at[source.SellSide]
	if rows.Buy != nil && rows.Sell != nil && *rows.Buy == *rows.Sell { // an entry for each side
		rows.Value, rows.Buy, rows.Sell, rows.Labels = rows.Buy, nil, nil, sided
	}
	return &source.Extract{Method: source.JSONRows, Rows: rows}
}

// labelOf returns the text in an entry that names the currency of a finding, or nil.
func labelOf(entry *html.Node, f *Finding, key string) *html.Node {
	for member := range entry.ChildNodes() {
		text := jsonText(member)
		currency, _ := only(values.Words(text), values.AboutCurrency)
		isCurrency := currency.Meaning == f.Currency || codesOfNumbers[text] == f.Currency
		if isCurrency && (key == "" || key == keyOf(member)) && !strings.Contains(text, "\n") {
			return member
		}
	}
	return nil
}

// jsonDates finds the dates of a JSON value, but for those in lists of several entries.
func jsonDates(node *html.Node) (found []source.Date) {
	for _, form := range dateForms {
		if _, _, err := values.ParseDate(jsonText(node), form); err == nil && node.Parent != nil {
			path, _ := pathOf(node, nil)
			return []source.Date{{Locator: source.Locator{At: path}, Form: form}}
		}
	}
	for inner := range node.ChildNodes() {
		if node.Data != listValue || inner.PrevSibling == nil && inner.NextSibling == nil {
			found = append(found, jsonDates(inner)...)
		}
	}
	return found
}

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

// only returns a word of a topic if all words of the topic have one meaning. several is true if they have different
// meanings. The peso does not count.
func only(words []values.Word, about values.Topic) (found values.Word, several bool) {
	for _, w := range words {
		switch {
		case w.Topic != about || w.Meaning == values.Pesos:
		case found.Meaning == "":
			found = w
		case w.Meaning != found.Meaning:
			return values.Word{}, true
		}
	}
	return found, false
}

const (
	pairMax  = 2   // prices of a small element: a buy and a sell price
	nameMax  = 500 // bytes of a name
	nameWork = 20  // work for each byte of a name; see spend
)

// namingAttributes are the attributes of an element that may name its content.
var namingAttributes = []string{"id", "class", "name", "aria-label", "title", "alt", "data-currency", "data-type", "data-side", "data-label", "headers"}

// takeWord searches the elements around a price, the innermost first, until one contains words of a topic. If these
// words do not clearly belong to the price, takeWord takes none.
func (f *finder) takeWord(s *spot, about values.Topic) {
	w, _ := only(values.Words(s.attribute), about)
	done, inTable := s.take("the attribute "+s.attribute, nil, w), false
	for node := s.node; !done && node != nil && node.DataAtom != atom.Body; node = node.Parent {
		if isCell(node) && !inTable {
			inTable, done = true, f.takeOfTable(s, node, about)
		}
		done = done || f.takeOfElement(s, node, about)
	}
}

// takeOfElement looks for a word of a price in the text and the names of an element around the price. done means that
// the search must not go on to outer elements.
func (f *finder) takeOfElement(s *spot, node *html.Node, about values.Topic) (done bool) {
	named, _ := only(f.names(node), about)
	w, several := only(f.wordsIn(node), about)
	switch {
	case w.Meaning == "" && !several:
		return s.take("the names of ", node, named)
	case !isJSON(node):
		w = f.wordFor(s, node, about)
	}
	if isConflict := named.Meaning != "" && named.Meaning != w.Meaning; about == values.AboutSide || !isConflict {
		s.take("the text of ", node, w)
	}
	return true
}

// names returns the words in the names (namingAttributes) of an element.
func (f *finder) names(node *html.Node) (words []values.Word) {
	for _, attr := range node.Attr {
		if slices.Contains(namingAttributes, attr.Key) && len(attr.Val) <= nameMax && !f.spend(nameWork*len(attr.Val)) {
			words = append(words, values.Words(attr.Val)...)
		}
	}
	return words
}

func (f *finder) tokensOf(node *html.Node) []token {
	tokens := f.stream[f.spans[node][0]:f.spans[node][1]]
	if f.spend(len(tokens) + 1) {
		return nil
	}
	return tokens
}

func (f *finder) wordsIn(node *html.Node) (words []values.Word) {
	for _, t := range f.tokensOf(node) {
		if t.spot == nil && t.word.Topic != "" {
			words = append(words, t.word)
		}
	}
	return words
}

func (f *finder) pricesIn(node *html.Node) (count int) {
	for _, t := range f.tokensOf(node) {
		if t.spot != nil {
			count++
		}
	}
	return count
}

// headingBefore returns the words of the heading just before an element.
func (f *finder) headingBefore(node *html.Node) []values.Word {
	sibling := node.PrevSibling
	for sibling != nil && sibling.Type != html.ElementNode {
		sibling = sibling.PrevSibling
	}
	headings := []atom.Atom{atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Caption, atom.Legend}
	if sibling == nil || !slices.Contains(headings, sibling.DataAtom) {
		return nil
	}
	return f.wordsIn(sibling)
}

// wordFor returns the word of a topic in an element that belongs to a price. This is clear in two cases: all words have
// one meaning, and are before or behind all prices; or each word has the same number of prices before it, or behind it.
// Otherwise wordFor returns the zero Word.
func (f *finder) wordFor(s *spot, node *html.Node, about values.Topic) values.Word {
	var words []values.Word
	prices, at := []int{0}, -1 // number of prices before the first word and behind each word; number of words before s
	for _, t := range f.tokensOf(node) {
		last := len(words) - 1
		switch {
		case t.spot != nil:
			prices[len(words)]++
			if t.spot == s {
				at = len(words)
			}
		case t.word.Topic != about || t.word.Meaning == values.Pesos:
		case last >= 0 && prices[len(words)] == 0 && words[last].Meaning == t.word.Meaning: // "US$ Dólar"
		default:
			words, prices = append(words, t.word), append(prices, 0)
		}
	}
	isBefore, isBehind := prices[0] == 0, prices[len(words)] == 0
	one, several := only(words, about)
	switch {
	case !several && (isBefore || isBehind):
		return one
	case at < 0: // an attribute
	case isBefore && areEqual(prices[1:]):
		return words[at-1]
	case isBehind && areEqual(prices[:len(words)]):
		return words[at]
	}
	return values.Word{}
}

func areEqual(counts []int) bool { return slices.Min(counts) == slices.Max(counts) && counts[0] > 0 }

func isCell(node *html.Node) bool { return node.DataAtom == atom.Td || node.DataAtom == atom.Th }

func cellOf(node *html.Node) *html.Node {
	for node != nil && !isCell(node) {
		node = node.Parent
	}
	return node
}

// gridOf returns the grid of the table around a cell (markup.Table.Grid), and the row and column of the cell in it.
func (f *finder) gridOf(cell *html.Node) (grid [][]*html.Node, row, column int) {
	table := markup.EnclosingTable(cell)
	if f.tables[table] == nil {
		f.tables[table] = markup.ReadTable(table, nil).Grid()
	}
	for i, cells := range f.tables[table] {
		f.spend(len(cells))
		if j := slices.Index(cells, cell); j >= 0 {
			return f.tables[table], i, j
		}
	}
	return nil, 0, 0
}

// takeOfTable looks for a word of a price in its cell, in the heading of its column, and in its row. done means that
// the search must not go on: a word was found, or the table contains words that do not clearly belong to the cell.
func (f *finder) takeOfTable(s *spot, cell *html.Node, about values.Topic) (done bool) {
	grid, row, column := f.gridOf(cell)
	if grid == nil {
		return true
	}
	var rowWords []values.Word
	for _, other := range grid[row] {
		if f.pricesIn(other) == 0 {
			rowWords = append(rowWords, f.wordsIn(other)...)
		}
	}
	inRow, _ := only(rowWords, about)
	switch own, several := only(f.wordsIn(cell), about); {
	case several:
		return f.pricesIn(cell) == 1
	case about == values.AboutCurrency && own.Meaning != "" && inRow.Meaning != "" && inRow.Meaning != own.Meaning:
		return true // "USD 66.10" in the row of the euro
	case s.take("the cell", nil, own):
		return true
	}
	for _, cells := range slices.Backward(grid[:row]) {
		if column >= len(cells) || f.pricesIn(cells[column]) > 0 {
			continue
		}
		heading, several := only(f.wordsIn(cells[column]), about)
		isShifted := len(cells) != len(grid[row]) || isWide(cells, cells[column]) || isWide(grid[row], cell)
		if several || heading.Meaning != "" && isShifted {
			return true // a cell too few, too many or too wide
		}
		if s.take("the heading of the column", nil, heading) {
			return true
		}
	}
	return s.take("the row", nil, inRow)
}

// isWide reports whether a cell is in several columns of a row.
func isWide(row []*html.Node, cell *html.Node) bool {
	first := slices.Index(row, cell)
	return first >= 0 && slices.Contains(row[first+1:], cell)
}

// isOther reports whether words say that a price is not today's general rate, or that it is the rate of another channel
// than the definition's.
func (f *finder) isOther(words []values.Word) bool {
	return slices.ContainsFunc(words, func(w values.Word) bool {
		return w.Topic == values.AboutOther || w.Topic == values.AboutChannel && w.Meaning != f.channel
	})
}

// hasNoise reports whether words beside a price say that it is another rate.
func (f *finder) hasNoise(s *spot) bool {
	for node := s.node; node != nil && node.DataAtom != atom.Body; node = node.Parent {
		isBeside := f.pricesIn(node) <= pairMax || node.DataAtom == atom.Tr || node.DataAtom == atom.Li
		if isBeside && f.isOther(f.wordsIn(node)) || (isBeside || isJSON(node)) && f.isOther(f.names(node)) || f.isOther(f.headingBefore(node)) {
			return true
		}
	}
	return false
}

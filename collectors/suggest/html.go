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

// token is a word or a price of a page.
type token struct {
	word values.Word
	spot *spot // nil for a word
}

// span is a part of the stream.
type span struct{ start, end int }

// textRun is the text of one node, with single spaces, and its prices.
type textRun struct {
	node  *html.Node
	text  string
	spots []*spot
}

// page is a page as a stream of words and prices, in the order of the page.
type page struct {
	*finder
	document *html.Node
	stream   []token
	spans    map[*html.Node]span // of the nodes
	runs     []textRun
	tables   map[*html.Node][][]*html.Node // cells by row and column
	labelsOf map[string]string             // texts of label elements, by the id that they are for
	title    []values.Word
	isJSON   bool // JSON values are read
}

func newPage(f *finder, document *html.Node) *page {
	return &page{finder: f, document: document, spans: map[*html.Node]span{}, tables: map[*html.Node][][]*html.Node{}, labelsOf: map[string]string{}}
}

func (f *finder) readHTML(text string) error {
	document, err := markup.Parse(text)
	if err != nil {
		return err
	}
	p := newPage(f, document)
	f.page = p
	for _, label := range markup.Find(document, "label[for]") {
		id, _ := markup.Text(label, "for")
		p.labelsOf[id] = markup.VisibleText(label)
	}
	for _, title := range markup.Find(document, "title, h1") {
		p.title = append(p.title, values.Words(markup.VisibleText(title))...)
	}
	for _, body := range markup.Find(document, "body") {
		if err := p.walk(body, false); err != nil {
			return err
		}
	}
	p.refuseSplit()
	p.takeOutNoise()
	for _, s := range f.spots {
		s.isNoise = s.isNoise || p.hasNoise(s)
	}
	p.takeOutNoise()
	for _, s := range f.spots {
		if !s.isNoise {
			p.label(s)
		}
	}
	for _, script := range markup.Find(document, "script") {
		if err := p.readScript(script); err != nil {
			return err
		}
	}
	return nil
}

// takeOutNoise takes prices that are not rates out of the stream. It keeps its length, because spans count its tokens.
func (p *page) takeOutNoise() {
	for i, t := range p.stream {
		if t.spot != nil && t.spot.isNoise {
			p.stream[i] = token{}
		}
	}
}

// walk adds the tokens of a node. Its recursion is bounded, because the HTML parser limits the depth of a document.
func (p *page) walk(node *html.Node, isHidden bool) (err error) {
	start := len(p.stream)
	defer func() { p.spans[node] = span{start, len(p.stream)} }()
	switch {
	case node.Type == html.TextNode && p.isJSON:
		return p.readJSONText(node.Parent, node.Data)
	case node.Type == html.TextNode:
		return p.readText(node, isHidden)
	case markup.IsInvisible(node) || markup.IsStruckOut(node):
		return nil
	}
	isHidden = isHidden || markup.IsHidden(node)
	for _, attr := range node.Attr {
		isInput := attr.Key == "value" && node.DataAtom == atom.Input
		if !isInput && !strings.HasPrefix(attr.Key, "data-") || !strings.ContainsAny(attr.Val, "0123456789") {
			continue
		}
		s, err := p.add(&spot{text: attr.Val, node: node, attribute: attr.Key, isHidden: isHidden && !isInput}, false)
		if err != nil {
			return err
		}
		if s != nil && isInput {
			p.stream = append(p.stream, token{spot: s})
		}
	}
	for child := node.FirstChild; child != nil && err == nil; child = child.NextSibling {
		err = p.walk(child, isHidden)
	}
	return err
}

var (
	// A number with the currency before it and the pesos behind it.
	numberPattern = regexp.MustCompile(`(?i)(RD ?\$|US ?\$|[$€£]|DOP|USD|EUR|GBP|CAD|CHF)?[ :]*([0-9]+(?:[.,][0-9]+)*)( ?DOP)?`)
	// Texts before and behind a number that make it a part of something else: of a range, a date, a percentage, a word.
	partBefore = regexp.MustCompile("(?:[0-9.,/'’´`+−–\\pL]|[0-9]\\s?[-/]\\s?|[^ ]-)$")
	partBehind = regexp.MustCompile(`^(?:\s?[-–/]\s?\$?[0-9]|[\pL'’´%/:]|\s?%|\s?/|[.,'’][0-9])`)
	// Digits that may be the decimals of a number in the element before.
	lonelyDigits = regexp.MustCompile(`^[.,'’]?\s?[0-9]{1,4}$`)
)

// numbersMax is the maximum number of numbers of one text that are looked at.
const numbersMax = 50

// readText adds the words and prices of a text.
func (p *page) readText(node *html.Node, isHidden bool) error {
	text := values.CollapseSpaces(node.Data)
	if text == "" {
		return nil
	}
	run := textRun{text: text, node: node}
	position := 0
	addWords := func(end int) {
		for _, w := range values.Words(text[position:end]) {
			p.stream = append(p.stream, token{word: w})
		}
		position = end
	}
	for _, at := range numberPattern.FindAllStringSubmatchIndex(text, numbersMax) {
		start, hasCurrency := at[4], at[2] >= 0
		if hasCurrency {
			start = at[2]
		}
		before, behind, digits := text[:start], text[at[1]:], text[at[4]:at[5]]
		isAlone := strings.TrimSpace(before+behind) == ""
		if partBefore.MatchString(before) || partBehind.MatchString(behind) || !strings.ContainsAny(digits, ".,") && !isAlone && !hasCurrency {
			continue
		}
		addWords(at[4])
		s, err := p.add(&spot{text: text[start:at[1]], node: node.Parent, textNode: node, start: at[4], end: at[5], isHidden: isHidden}, false)
		if err != nil {
			return err
		}
		if s != nil {
			run.spots, p.stream, position = append(run.spots, s), append(p.stream, token{spot: s}), at[1]
		}
	}
	addWords(len(text))
	p.runs = append(p.runs, run)
	return nil
}

// refuseSplit refuses numbers whose decimals may stand in the element beside them.
func (p *page) refuseSplit() {
	for i := range p.runs {
		for _, j := range []int{i - 1, i + 1} {
			if j < 0 || j >= len(p.runs) || !closeTogether(p.runs[i].node.Parent, p.runs[j].node.Parent) {
				continue
			}
			text, beside := p.runs[i].text, p.runs[j].text
			endsInNumber := strings.ContainsAny(beside[len(beside)-1:], "0123456789.,")
			for _, s := range p.runs[i].spots {
				s.isNoise = s.isNoise || lonelyDigits.MatchString(beside) || j < i && endsInNumber && lonelyDigits.MatchString(text)
			}
		}
	}
}

// closeTogether reports whether two elements are one, parent and child, or siblings that are not cells.
func closeTogether(a, b *html.Node) bool {
	return (a == b || a.Parent == b || a == b.Parent || a.Parent == b.Parent) && !isCell(a) && !isCell(b)
}

const (
	scriptMax      = 200_000 // bytes of a script that is searched
	statementMax   = 4_000   // bytes of one statement
	quoteCharacter = "[\"'`]?"
)

// A name, and behind it a number.
var (
	statementEnd  = regexp.MustCompile(`[;\n]`)
	scriptPattern = regexp.MustCompile(`(?s)([A-Za-z_$.#'"()\[\]\s-]{4,120}?)[=:(]\s*(?:[A-Za-z]{1,20}\()?` + quoteCharacter +
		`((?:RD\$|\$)?\s?[0-9]+(?:\.[0-9]+|,[0-9]{2})?(?:\s?DOP)?)["'` + "`" + `)\];}]`)
)

// readScript adds the prices of a script: those of the JSON values that it assigns or, if they have none with words,
// the numbers behind a name with a currency and a side.
func (p *page) readScript(node *html.Node) error {
	text, _ := markup.Text(node, "")
	if len(text) > scriptMax {
		return nil
	}
	if found, err := p.readScriptJSON(text); found || err != nil {
		return err
	}
	for _, statement := range statementEnd.Split(text, -1) {
		if len(statement) > statementMax || strings.HasPrefix(strings.TrimSpace(statement), "//") {
			continue
		}
		for _, match := range scriptPattern.FindAllStringSubmatch(statement+";", numbersMax) {
			side, _ := only(values.Words(match[1]), values.AboutSide)
			currency, _ := only(values.Words(match[1]), values.AboutCurrency)
			if side.Meaning == "" || currency.Meaning == "" {
				continue
			}
			s, err := p.add(&spot{text: match[2], node: node, script: match[1], inScript: true}, false)
			if err != nil {
				return err
			}
			if s != nil {
				s.take("the script", side)
				s.take("the script", currency)
			}
		}
	}
	return nil
}

// readScriptJSON adds the prices of the JSON values that a script assigns. found is false if it has none with words.
func (p *page) readScriptJSON(text string) (found bool, err error) {
	for range numbersMax {
		start := strings.IndexAny(text, "{[")
		if start < 0 {
			break
		}
		text = text[start:]
		decoder := json.NewDecoder(strings.NewReader(text))
		var whole json.RawMessage
		if decoder.Decode(&whole) != nil {
			text = text[1:]
			continue
		}
		before := len(p.spots)
		_, added, err := p.addJSON(string(whole))
		if err != nil {
			return found, err
		}
		kept := slices.DeleteFunc(added, func(s *spot) bool { return !s.isNamed() })
		for _, s := range kept {
			s.inScript = true
		}
		p.spots = p.spots[:before+len(kept)]
		found = found || len(kept) > 0
		text = text[decoder.InputOffset():]
	}
	return found, nil
}

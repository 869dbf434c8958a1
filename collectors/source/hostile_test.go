package source_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/simulated"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// spoilings make of a number something that is none, or that is another one only by a guess.
func spoilings() map[string]func(string) string {
	half := func(text, between string) string { return text[:2] + between + text[2:] }
	return map[string]func(string) string{
		"a sign":              func(v string) string { return "-" + v },
		"a long sign":         func(v string) string { return "\u2212" + v },
		"a sign and a blank":  func(v string) string { return "- " + v },
		"an exponent":         func(v string) string { return v + "e1" },
		"a footnote":          func(v string) string { return v + " 1" },
		"a superscript":       func(v string) string { return v + "\u00b9" },
		"a raised footnote":   func(v string) string { return v + "<sup>1</sup>" },
		"a blank in the way":  func(v string) string { return half(v, " ") },
		"a blank behind it":   func(v string) string { return half(v, ". ") },
		"a no-break space":    func(v string) string { return half(v, "\u00a0") },
		"a line in the way":   func(v string) string { return half(v, "\n") },
		"a tag in the way":    func(v string) string { return half(v, "<span> </span>") },
		"two points":          func(v string) string { return v + ".5" },
		"two points together": func(v string) string { return half(v, "..") },
		"a range":             func(v string) string { return v + "-" + v[:1] + "9.99" },
		"two numbers":         func(v string) string { return v + " 61.75" },
		"a letter":            func(v string) string { return half(v, "O") },
		"other digits":        func(v string) string { return "\uff15" + v[1:] },
		"a lone point":        func(v string) string { return v[:2] + "." },
		"not a number":        func(string) string { return "NaN" },
		"without end":         func(string) string { return "Infinity" },
		"hexadecimal":         func(v string) string { return "0x" + v },
		"thirty digits":       func(v string) string { return v + strings.Repeat("1", 30) },
	}
}

// said is every side of an answer that is a decimal, by quote.
func said(answer source.Answer) map[string]string {
	sides := map[string]string{}
	for _, o := range answer.Observations {
		key := o.InstitutionID + " " + o.Currency + " " + string(o.Channel)
		for name, text := range map[string]string{" buy": o.Buy, " sell": o.Sell} {
			if _, err := engine.ReadDecimal(text); err == nil {
				sides[key+name] = text
			}
		}
	}
	return sides
}

// valuesMax is how many values of one page are spoiled: rows of one table are all read in the same way.
const valuesMax = 4

// of all definitions every so many-th is taken under the race detector.
const raceStep = 5

// pages are the pages of every definition, as the simulated institutions publish them.
func pages() *simulated.Site {
	market := simulated.NewMarket(7)
	for range 20 {
		market.Step(time.Date(2026, 9, 17, 16, 0, 0, 0, time.UTC))
	}
	return simulated.NewSite(simulated.SiteConfig{Market: market})
}

// Whatever is done to a number on a page, what is read is that number or nothing: every definition, in turn.
func TestI3_SpoiledNumbersAreNeverReadAsOthers(t *testing.T) {
	site, spoiled, refused := pages(), 0, 0
	for i, d := range source.DefaultSet().Definitions() {
		if source.RaceDetector && i%raceStep > 0 {
			continue
		}
		for page := range d.Pages {
			if d.Pages[page].Extract.Method != source.XLSXRows {
				made, without, wrong := spoilPage(d, page, site.Document(d.ID, page))
				spoiled, refused = spoiled+made, refused+without
				for _, reading := range wrong {
					t.Error(reading)
				}
			}
		}
	}
	t.Logf("%d spoiled documents, %d of them without the value", spoiled, refused)
	if spoiled < 1000 && !source.RaceDetector || refused == 0 {
		t.Errorf("only %d spoiled documents, %d of them without the value: the test proves nothing", spoiled, refused)
	}
}

// spoilPage returns how many documents it made, and how many of them gave no value. A page without values makes none.
func spoilPage(d *source.Definition, page int, document *source.Document) (spoiled, refused int, wrong []string) {
	whole, err := d.Parse(page, document)
	if err != nil {
		return 0, 0, nil
	}
	before := said(whole)
	quotes := slices.Sorted(maps.Keys(before))
	for _, quote := range quotes[:min(len(quotes), valuesMax)] {
		value := before[quote]
		if !strings.Contains(value, ".") || !bytes.Contains(document.Body, []byte(value)) {
			continue
		}
		for name, spoil := range spoilings() {
			body := bytes.ReplaceAll(document.Body, []byte(value), []byte(spoil(value)))
			answer, _ := d.Parse(page, &source.Document{Body: body, ContentType: document.ContentType})
			after := said(answer)
			spoiled++
			if after[quote] == "" {
				refused++
			}
			for other, text := range after {
				if text != before[other] {
					wrong = append(wrong, fmt.Sprintf("%s, page %d, %s in %s: %s reads %s, was %s", d.ID, page, name, value, other, text, before[other]))
				}
			}
		}
	}
	return spoiled, refused, wrong
}

// Control: a pattern that takes the first digits that it finds is caught.
func TestI3_CarelessPatternsAreCaught(t *testing.T) {
	d, _ := source.DefaultSet().Find("qik-site")
	careless := *d
	careless.Pages = slices.Clone(d.Pages)
	careless.Pages[0].Extract.Text = &source.Text{At: "body", Min: 1, Pattern: `(?s)Vendemos\D*(?P<sell>[0-9.]+).*?Compramos\D*(?P<buy>[0-9.]+)`}
	if _, _, wrong := spoilPage(&careless, 0, pages().Document("qik-site", 0)); len(wrong) == 0 {
		t.Error("a careless pattern reads nothing wrong: the test above proves nothing")
	}
}

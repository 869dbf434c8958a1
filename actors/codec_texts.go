package actors

import (
	"hash/maphash"
	"strings"

	"github.com/tasard/tasard/engine"
)

// knownTexts keeps one copy of each text that occurs again and again: a million rows name the same institutions, sources and numbers.
// Texts that are looked up borrow the bytes of a record; what is given back does not.
type knownTexts struct {
	all    map[string]*knownText
	recent [recentTexts]*knownText // by hash, in front of the map: most texts were seen a moment ago
	seed   maphash.Seed
}

// knownText is a text and, once it was read as a number, its value.
type knownText struct {
	text  string
	value engine.Decimal
	err   error
	read  bool
}

const (
	// textsMax bounds the memory of what was seen: institutions, sources and the numbers of a market are far fewer.
	textsMax = 1 << 16
	// recentTexts is how many are found without the map.
	recentTexts = 1 << 12
)

func newTexts() *knownTexts {
	return &knownTexts{all: map[string]*knownText{}, seed: maphash.MakeSeed()}
}

// find is the known text that equals s.
func (t *knownTexts) find(s string) *knownText {
	recent := &t.recent[maphash.String(t.seed, s)%recentTexts]
	if known := *recent; known != nil && known.text == s {
		return known
	}
	known := t.all[s]
	if known == nil {
		known = &knownText{text: strings.Clone(s)}
		if len(t.all) < textsMax {
			t.all[known.text] = known
		}
	}
	*recent = known
	return known
}

// text is the one copy of a text. A decoder without texts copies each.
func (d *decoder) text(s string) string {
	switch {
	case s == "":
		return ""
	case d.texts == nil:
		return strings.Clone(s)
	}
	return d.texts.find(s).text
}

// own is a text that hardly occurs twice.
func (d *decoder) own(s string) string {
	if d.borrow {
		return s
	}
	return strings.Clone(s)
}

func (d *decoder) decimal(s string) engine.Decimal {
	if s == "" {
		return engine.Decimal{}
	}
	if d.texts == nil {
		value, err := engine.ParseDecimal(strings.Clone(s))
		d.keep(err)
		return value
	}
	known := d.texts.find(s)
	if !known.read {
		known.value, known.err = engine.ParseDecimal(known.text)
		known.read = true
	}
	d.keep(known.err)
	return known.value
}

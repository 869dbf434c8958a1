package record

import (
	"hash/maphash"

	"github.com/tasard/tasard/engine"
)

// knownTexts keeps one copy of each text that occurs again and again: a million rows name the same institutions, sources and numbers.
// A nil one copies each text.
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

// find is the known text with these bytes, which are borrowed.
func (t *knownTexts) find(s []byte) *knownText {
	recent := &t.recent[maphash.Bytes(t.seed, s)%recentTexts]
	if known := *recent; known != nil && known.text == string(s) {
		return known
	}
	known := t.all[string(s)]
	if known == nil {
		known = &knownText{text: string(s)}
		if len(t.all) < textsMax {
			t.all[known.text] = known
		}
	}
	*recent = known
	return known
}

// text is the one copy of a text.
func (t *knownTexts) text(s []byte) string {
	if t == nil || len(s) == 0 {
		return string(s)
	}
	return t.find(s).text
}

// decimal is the number that a text is, null for none.
func (t *knownTexts) decimal(s []byte) (engine.Decimal, error) {
	switch {
	case len(s) == 0:
		return engine.Decimal{}, nil
	case t == nil:
		return engine.ParseDecimal(string(s))
	}
	known := t.find(s)
	if !known.read {
		known.value, known.err = engine.ParseDecimal(known.text)
		known.read = true
	}
	return known.value, known.err
}

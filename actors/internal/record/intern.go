package record

import (
	"hash/maphash"

	"github.com/tasard/tasard/engine"
)

// internTable keeps one copy of each text that occurs again and again: a million rows name the same institutions, sources and numbers.
// A nil one copies each text.
type internTable struct {
	all    map[string]*internedText
	recent [recentMax]*internedText // by hash, in front of the map: most texts were seen a moment ago
	seed   maphash.Seed
}

// internedText is a text and, once it was read as a number, its value.
type internedText struct {
	text  string
	value engine.Decimal
	err   error
	read  bool
}

const (
	// internedMax bounds the memory of what was seen: institutions, sources and the numbers of a market are far fewer.
	internedMax = 1 << 16
	// recentMax is how many are found without the map.
	recentMax = 1 << 12
)

func newInternTable() *internTable {
	return &internTable{all: map[string]*internedText{}, seed: maphash.MakeSeed()}
}

// lookup is the known text with these bytes, which are borrowed.
func (t *internTable) lookup(s []byte) *internedText {
	recent := &t.recent[maphash.Bytes(t.seed, s)%recentMax]
	if known := *recent; known != nil && known.text == string(s) {
		return known
	}
	known := t.all[string(s)]
	if known == nil {
		known = &internedText{text: string(s)}
		if len(t.all) < internedMax {
			t.all[known.text] = known
		}
	}
	*recent = known
	return known
}

// text is the one copy of a text.
func (t *internTable) text(s []byte) string {
	if t == nil || len(s) == 0 {
		return string(s)
	}
	return t.lookup(s).text
}

// decimal is the number that a text is, null for none.
func (t *internTable) decimal(s []byte) (engine.Decimal, error) {
	switch {
	case len(s) == 0:
		return engine.Decimal{}, nil
	case t == nil:
		return engine.ParseDecimal(string(s))
	}
	known := t.lookup(s)
	if !known.read {
		known.value, known.err = engine.ParseDecimal(known.text)
		known.read = true
	}
	return known.value, known.err
}

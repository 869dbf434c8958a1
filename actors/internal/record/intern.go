package record

import (
	"hash/maphash"

	"github.com/tasard/tasard/engine"
)

// internTable keeps one copy of each repeated text: a million rows name the same institutions, sources and numbers. A
// nil table copies each text.
type internTable struct {
	byText map[string]*internedText
	recent [recentMax]*internedText // a cache by hash: most texts repeat soon
	seed   maphash.Seed
}

// internedText is a text and, once it was parsed, its value as a number.
type internedText struct {
	text    string
	decimal engine.Decimal
	err     error
	parsed  bool
}

const (
	internedMax = 1 << 16 // texts; institutions, sources and the numbers of a market are far fewer
	recentMax   = 1 << 12
)

func newInternTable() *internTable {
	return &internTable{byText: map[string]*internedText{}, seed: maphash.MakeSeed()}
}

// lookup returns the interned text with the bytes s, which it copies if it is new.
func (t *internTable) lookup(s []byte) *internedText {
	recent := &t.recent[maphash.Bytes(t.seed, s)%recentMax]
	if known := *recent; known != nil && known.text == string(s) {
		return known
	}
	known := t.byText[string(s)]
	if known == nil {
		known = &internedText{text: string(s)}
		if len(t.byText) < internedMax {
			t.byText[known.text] = known
		}
	}
	*recent = known
	return known
}

// text returns the copy of a text.
func (t *internTable) text(s []byte) string {
	if t == nil || len(s) == 0 {
		return string(s)
	}
	return t.lookup(s).text
}

// decimal parses a text as a number; "" is null.
func (t *internTable) decimal(s []byte) (engine.Decimal, error) {
	switch {
	case len(s) == 0:
		return engine.Decimal{}, nil
	case t == nil:
		return engine.ParseDecimal(string(s))
	}
	known := t.lookup(s)
	if !known.parsed {
		known.decimal, known.err = engine.ParseDecimal(known.text)
		known.parsed = true
	}
	return known.decimal, known.err
}

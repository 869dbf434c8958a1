package record

import (
	"hash/maphash"

	"github.com/tasard/tasard/engine"
)

// internTable stores one copy of each text, because a million records have the same few institutions, sources and
// numbers. A nil table copies each text.
type internTable struct {
	byText map[string]*internedText
	recent []*internedText // cache for byText, by the hash of the text; nil before the first text
	seed   maphash.Seed
}

// internedText is a text. If parsed is true, decimal and err are the result of engine.ParseDecimal.
type internedText struct {
	text    string
	decimal engine.Decimal
	err     error
	parsed  bool
}

const (
	internedMax = 1 << 16 // limit of byText; usually there are far fewer texts
	recentMax   = 1 << 12
)

func newInternTable() *internTable {
	return &internTable{byText: map[string]*internedText{}, seed: maphash.MakeSeed()}
}

// lookup returns the entry of s. It makes a new entry if there is none.
func (t *internTable) lookup(s []byte) *internedText {
	if t.recent == nil {
		t.recent = make([]*internedText, recentMax)
	}
	cached := &t.recent[maphash.Bytes(t.seed, s)%recentMax]
	if entry := *cached; entry != nil && entry.text == string(s) {
		return entry
	}
	entry := t.byText[string(s)]
	if entry == nil {
		entry = &internedText{text: string(s)}
		if len(t.byText) < internedMax {
			t.byText[entry.text] = entry
		}
	}
	*cached = entry
	return entry
}

// text returns s as a string, interned if possible.
func (t *internTable) text(s []byte) string {
	if t == nil || len(s) == 0 {
		return string(s)
	}
	return t.lookup(s).text
}

// decimal parses the text of a number. The empty text is the null Decimal.
func (t *internTable) decimal(s []byte) (engine.Decimal, error) {
	switch {
	case len(s) == 0:
		return engine.Decimal{}, nil
	case t == nil:
		return engine.ParseDecimal(string(s))
	}
	entry := t.lookup(s)
	if !entry.parsed {
		entry.decimal, entry.err = engine.ParseDecimal(entry.text)
		entry.parsed = true
	}
	return entry.decimal, entry.err
}

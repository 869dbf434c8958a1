package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tasard/tasard/engine"
)

// Limits of a definition file. They are far above what any source needs, and far below what would hurt.
const (
	fileBytesMax     = 256 << 10
	nameMax          = 200  // characters of a name, a heading or a key
	textMax          = 4000 // characters of a note, an address, a selector or a pattern
	bodyBytesMax     = 16 << 10
	pagesMax         = 16
	requestsMax      = 5
	entriesMax       = 1000 // entries of any other list or map
	decimalsLimit    = 8    // as many as the engine keeps (I2)
	jumpPermilleMax  = 1_000_000
	minimumRowsMax   = 500
	priorityMax      = 1_000_000_000
	attributeNameMax = 80
)

// Read reads and checks one definition file; name is the file's, for errors. The error tells every problem of the file at
// once, each with its place and the way out; it unwraps to one error for each (errors.Join).
func Read(name string, data []byte) (*Definition, error) {
	entry, err := readEntry(name, data)
	if err != nil {
		return nil, err
	}
	if entry.change != nil {
		return nil, fmt.Errorf("%s: the file has no pages, so it only changes a known definition; put it into the directory of an operator",
			name)
	}
	return entry.definition, nil
}

// entry is what one file says: a whole definition, or a change of one that is known.
type entry struct {
	name       string
	id         string
	definition *Definition
	change     *change
}

// change is what an operator may say of a known definition without writing it anew. nil leaves a field as it is.
type change struct {
	disabled     *string
	ignoreRobots *bool
	caFile       *string
	priority     *int64
}

func (c *change) empty() bool {
	return c.disabled == nil && c.ignoreRobots == nil && c.caFile == nil && c.priority == nil
}

func readEntry(name string, data []byte) (*entry, error) {
	if err := engine.CheckJSON(data, fileBytesMax, "shorten its notes and lists"); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	report := &problems{name: name}
	top := report.object("the file", data)
	read := &entry{name: name}
	if _, whole := top.fields["pages"]; whole || len(top.fields) == 0 {
		read.definition = top.definition()
		read.id = read.definition.ID
	} else {
		read.change = top.change()
		read.id = top.id("id")
	}
	top.refuseOtherKeys()
	if read.change != nil && read.change.empty() && len(report.found) == 0 {
		top.wrong("has no pages and changes nothing; write a whole definition, or disabled, ignoreRobots, caFile or priority")
	}
	if err := errors.Join(report.found...); err != nil {
		return nil, err
	}
	return read, nil
}

// change reads what a file without pages may say.
func (o *object) change() *change {
	c := &change{}
	if _, given := o.fields["disabled"]; given {
		text := o.text("disabled", textMax)
		c.disabled = &text
	}
	if _, given := o.fields["ignoreRobots"]; given {
		flag := o.flag("ignoreRobots")
		c.ignoreRobots = &flag
	}
	if _, given := o.fields["caFile"]; given {
		file := o.file("caFile")
		c.caFile = &file
	}
	if _, given := o.fields["priority"]; given {
		priority := o.number("priority", engine.PriorityDefault, 0, priorityMax)
		c.priority = &priority
	}
	return c
}

// apply is the definition with the change.
func (c *change) apply(known *Definition) *Definition {
	changed := *known
	if c.disabled != nil {
		changed.Disabled = *c.disabled
	}
	if c.ignoreRobots != nil {
		changed.IgnoreRobots = *c.ignoreRobots
	}
	if c.caFile != nil {
		changed.CAFile = *c.caFile
	}
	if c.priority != nil {
		changed.Priority = *c.priority
	}
	return &changed
}

// definition reads a whole definition. The order of the keys here is the order in which problems are told.
func (o *object) definition() *Definition {
	d := &Definition{
		ID: o.id("id"), Name: o.required("name", nameMax), URL: o.uri("url"),
		Institution:    o.optionalID("institution"),
		Priority:       o.number("priority", engine.PriorityDefault, 0, priorityMax),
		UpstreamSource: o.text("upstreamSource", engine.UpstreamSourceMax),
		Kind:           word(o, "kind", engine.Commercial, engine.Kinds()),
		Channel:        word(o, "channel", engine.Unspecified, engine.Channels()),
		Language:       word(o, "language", "es", []string{"es", "en"}),
		Decimal:        word(o, "decimal", AnyMark, []DecimalMark{Point, Comma}),
		DecimalsMax:    int(o.number("decimalsMax", decimalsLimit, 0, decimalsLimit)),
		IgnoreRobots:   o.flag("ignoreRobots"),
		PlainHTTP:      o.flag("plainHttp"),
		CAFile:         o.file("caFile"),
		Disabled:       o.text("disabled", textMax),
		Note:           o.text("note", textMax),
	}
	d.Expiry = o.expiry("expiry")
	eachObject(o, "bounds", entriesMax, func(bound *object) { d.Bounds = append(d.Bounds, bound.bound()) })
	labels := o.sharedLabels()
	eachObject(o, "pages", pagesMax, func(page *object) { d.Pages = append(d.Pages, page.page(d, labels)) })
	if labels != nil && !slices.ContainsFunc(d.Pages, func(p Page) bool { return p.labelled() }) {
		o.wrong("labels is given, but no page tells its values apart by labels; take it out")
	}
	o.checkWhole(d)
	return d
}

func (o *object) expiry(key string) Expiry {
	expiry := Expiry{AfterCheck: engine.LifetimeDefault}
	if part, given := o.part(key); given {
		expiry.AfterCheck = part.span("afterCheck", engine.LifetimeDefault)
		expiry.AfterDate = part.span("afterDate", 0)
		part.refuseOtherKeys()
	}
	return expiry
}

func (o *object) bound() engine.Bound {
	bound := engine.Bound{
		Currency: o.requiredCurrency("currency"), Until: o.day("until"), Lowest: o.decimal("lowest"), Highest: o.decimal("highest"),
		JumpPermille: o.number("jumpPermille", 0, 1, jumpPermilleMax), SidesDiffer: o.flag("sidesDiffer"),
	}
	low, high := bound.Lowest, bound.Highest
	if !low.IsNull() && !high.IsNull() && low.Compare(high) > 0 {
		o.wrong("lowest %s is above highest %s; exchange them", low, high)
	}
	if low.IsNull() && high.IsNull() && bound.JumpPermille == 0 && !bound.SidesDiffer {
		o.wrong("bounds nothing; give lowest, highest, jumpPermille or sidesDiffer, or take the entry out")
	}
	return bound
}

// checkWhole checks what one part of a definition demands of another.
func (o *object) checkWhole(d *Definition) {
	if d.Institution == "" && d.UpstreamSource == "" {
		o.wrong("neither institution nor upstreamSource is given; say whom the source speaks for, or that it repeats others")
	}
	o.checkBounds(d.Bounds)
	if len(d.Pages) == 0 {
		o.wrong("pages is missing or empty; a source has at least one page")
	}
	names := map[string]bool{}
	dated := false
	for i := range d.Pages {
		page := &d.Pages[i]
		dated = dated || page.dated()
		switch {
		case page.Name == "" && len(d.Pages) > 1:
			o.wrong("pages[%d] has no name; with more than one page each needs one", i)
		case names[page.Name]:
			o.wrong("two pages are named %q; give each its own name", page.Name)
		}
		names[page.Name] = true
	}
	if d.Expiry.AfterDate > 0 && !dated && len(d.Pages) > 0 {
		o.wrong("expiry.afterDate is given, but no page has a date; add a date or take it out")
	}
}

func (o *object) checkBounds(bounds []engine.Bound) {
	type place struct {
		currency string
		until    engine.Date
	}
	seen := map[place]bool{}
	for i, bound := range bounds {
		at := place{bound.Currency, bound.Until}
		if seen[at] {
			o.wrong("bounds[%d] bounds %s for the same dates as another; keep one", i, bound.Currency)
		}
		seen[at] = true
	}
}

// dated reports that the page tells the day of its values.
func (p *Page) dated() bool {
	return p.Extract.Date != nil || p.Extract.Sheet != nil || p.Extract.Rows != nil && p.Extract.Rows.Date != nil
}

// labelled reports that the page tells its values apart by labels.
func (p *Page) labelled() bool {
	return p.Extract.Rows != nil || p.Extract.Text != nil && len(p.Extract.Text.Labels) > 0
}

// isID is the form of the ids of sources and institutions (interface §2.1).
func isID(text string) bool {
	return text != "" && len(text) <= engine.InstitutionIDMax && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

package source

import (
	"slices"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/jsonfile"
)

// Limits of a definition file. No known source comes near them.
const (
	fileBytesMax     = 256 << 10
	nameMax          = 200  // characters of a name, a heading or a key
	textMax          = 4000 // characters of a note, an address, a selector or a pattern
	bodyBytesMax     = 16 << 10
	pagesMax         = 16
	requestsMax      = 5
	entriesMax       = 1000 // entries of any other list or map
	decimalsLimit    = 8    // number of decimals of a price that the engine keeps
	jumpPermilleMax  = 1_000_000
	minimumRowsMax   = 500
	priorityMax      = 1_000_000_000
	attributeNameMax = 80
)

// definitionFile is the content of one file: a whole definition, which says how the pages of a source are fetched and
// read, or changes of an existing definition.
type definitionFile struct {
	name       string
	id         string              // of the definition that the file defines or changes
	definition *Definition         // nil in a file with changes
	changes    []func(*Definition) // nil in a file with a whole definition
}

func readDefinitionFile(name string, data []byte) (*definitionFile, error) {
	file := &definitionFile{name: name}
	err := jsonfile.Read(name, data, fileBytesMax, "shorten its notes and lists", func(whole *jsonfile.Object) {
		top := &object{whole}
		top.Text("$schema", textMax) // for editors
		if top.Has("pages") || top.Empty() {
			file.definition = top.definition()
			file.id = file.definition.ID
			return
		}
		file.changes, file.id = top.changes(), top.Required("id", "", top.id)
		if len(file.changes) == 0 && top.Empty() && !top.Failed() {
			top.Errorf("has no pages and changes nothing; write a whole definition, or one of the keys that docs/definitions.md names")
		}
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// changes reads a file that changes an existing definition. It returns a function for each change.
func (o *object) changes() (changes []func(*Definition)) {
	if o.Has("disabled") {
		text := o.Text("disabled", textMax)
		changes = append(changes, func(d *Definition) { d.Disabled = text })
	}
	if o.Has("ignoreRobots") {
		flag := o.Bool("ignoreRobots", false)
		changes = append(changes, func(d *Definition) { d.IgnoreRobots = flag })
	}
	if o.Has("caFile") {
		file := o.file("caFile")
		changes = append(changes, func(d *Definition) { d.CAFile = file })
	}
	if o.Has("userAgent") {
		text := o.userAgent("userAgent")
		changes = append(changes, func(d *Definition) { d.UserAgent = text })
	}
	if o.Has("oldCiphers") {
		flag := o.Bool("oldCiphers", false)
		changes = append(changes, func(d *Definition) { d.OldCiphers = flag })
	}
	if o.Has("proxy") {
		address := o.proxy("proxy")
		changes = append(changes, func(d *Definition) { d.Proxy = address })
	}
	if o.Has("priority") {
		priority := o.Number("priority", engine.PriorityDefault, 0, priorityMax)
		changes = append(changes, func(d *Definition) { d.Priority = priority })
	}
	return changes
}

// apply returns the definition in the file, or existing with the changes in the file.
func (f *definitionFile) apply(existing *Definition) *Definition {
	if f.definition != nil {
		return f.definition
	}
	changed := *existing
	for _, change := range f.changes {
		change(&changed)
	}
	return &changed
}

// definition reads a whole definition. If the file has several problems, the error lists them in the order in which the
// keys are read here.
func (o *object) definition() *Definition {
	d := &Definition{
		ID: o.Required("id", "", o.id), Name: o.Required("name", "", o.shortText), URL: o.URI("url", textMax),
		Institution:    o.id("institution"),
		Priority:       o.Number("priority", engine.PriorityDefault, 0, priorityMax),
		UpstreamSource: o.Text("upstreamSource", engine.UpstreamSourceMax),
		Kind:           jsonfile.Enum(o.Object, "kind", engine.Commercial, engine.Kinds()),
		Channel:        jsonfile.Enum(o.Object, "channel", engine.Unspecified, engine.Channels()),
		Language:       jsonfile.Enum(o.Object, "language", "es", []string{"es", "en"}),
		Decimal:        jsonfile.Enum(o.Object, "decimal", values.AnyMark, []values.DecimalMark{values.Point, values.Comma}),
		DecimalsMax:    int(o.Number("decimalsMax", decimalsLimit, 0, decimalsLimit)),
		IgnoreRobots:   o.Bool("ignoreRobots", false),
		PlainHTTP:      o.Bool("plainHttp", false),
		CAFile:         o.file("caFile"),
		UserAgent:      o.userAgent("userAgent"),
		OldCiphers:     o.Bool("oldCiphers", false),
		Proxy:          o.proxy("proxy"),
		Evidence:       o.evidence(),
		Note:           o.Text("note", textMax),
		Expiry:         Expiry{AfterCheck: engine.LifetimeDefault},
	}
	d.Disabled = d.Evidence.OldReason()
	if o.Has("disabled") {
		d.Disabled = o.Text("disabled", textMax)
	}
	o.part("expiry", func(part *object) {
		d.Expiry = Expiry{AfterCheck: part.Duration("afterCheck", engine.LifetimeDefault), AfterDate: part.Duration("afterDate", 0)}
	})
	o.secrets(d)
	o.each("bounds", entriesMax, func(bound *object) { d.Bounds = append(d.Bounds, bound.bound()) })
	hasLabels := o.Has("labels")
	labels := o.labels("labels")
	if hasLabels && len(labels) == 0 {
		o.Errorf("labels is empty; say what each label means, or remove it")
	}
	o.each("pages", pagesMax, func(page *object) { d.Pages = append(d.Pages, page.page(d, labels)) })
	if len(labels) > 0 && !slices.ContainsFunc(d.Pages, Page.labelled) {
		o.Errorf("labels is given, but no page uses labels; remove it")
	}
	o.checkWhole(d)
	return d
}

// bound reads an entry of "bounds": the plausible prices of one currency.
func (o *object) bound() engine.PlausibleRange {
	bound := engine.PlausibleRange{
		Currency: o.Required("currency", "; use the ISO 4217 code, as USD", o.currency), Until: o.day("until"), Lowest: jsonfile.Parsed(o.Object, "lowest", "40", engine.ParseDecimal), Highest: jsonfile.Parsed(o.Object, "highest", "40", engine.ParseDecimal),
		JumpPermille: o.Number("jumpPermille", 0, 1, jumpPermilleMax), SidesDiffer: o.Bool("sidesDiffer", false),
	}
	low, high := bound.Lowest, bound.Highest
	if !low.IsNull() && !high.IsNull() && low.Compare(high) > 0 {
		o.Errorf("lowest %s is above highest %s; exchange them", low, high)
	}
	if low.IsNull() && high.IsNull() && bound.JumpPermille == 0 && !bound.SidesDiffer {
		o.Errorf("bounds nothing; give lowest, highest, jumpPermille or sidesDiffer, or remove the entry")
	}
	return bound
}

// checkWhole checks the conditions that involve several keys of a definition, such as names that must be different.
func (o *object) checkWhole(d *Definition) {
	if d.Institution == "" && d.UpstreamSource == "" {
		o.Errorf("neither institution nor upstreamSource is given; name the institution of the source, or the aggregator")
	}
	type boundKey struct {
		currency string
		until    engine.Date
	}
	bounded := map[boundKey]bool{}
	for i, bound := range d.Bounds {
		key := boundKey{bound.Currency, bound.Until}
		if bounded[key] {
			o.Errorf("bounds[%d] bounds %s for the same dates as another; keep one", i, bound.Currency)
		}
		bounded[key] = true
	}
	if len(d.Pages) == 0 {
		o.Errorf("pages is missing or empty; a source has at least one page")
	}
	o.checkSecrets(d)
	names := map[string]bool{}
	dated := false
	for i := range d.Pages {
		page := &d.Pages[i]
		dated = dated || page.Dated()
		isReplaced := func(other Page) bool { return other.Name == page.InsteadOf && other.InsteadOf == "" }
		if page.InsteadOf != "" && !slices.ContainsFunc(d.Pages[:i], isReplaced) {
			o.Errorf("pages[%d] is read instead of %q; name an earlier page that has no insteadOf itself", i, page.InsteadOf)
		}
		switch {
		case page.Name == "" && len(d.Pages) > 1:
			o.Errorf("pages[%d] has no name; with more than one page each needs one", i)
		case names[page.Name]:
			o.Errorf("two pages are named %q; give each its own name", page.Name)
		}
		names[page.Name] = true
	}
	if d.Expiry.AfterDate > 0 && !dated && len(d.Pages) > 0 {
		o.Errorf("expiry.afterDate is given, but no page has a date; add a date or remove it")
	}
}

// Dated reports whether the quotes of the page have a date.
func (p *Page) Dated() bool {
	return p.Extract.Date != nil || p.Extract.Sheet != nil || p.Extract.Rows != nil && p.Extract.Rows.Date != nil
}

// labelled reports whether the page has rows or matches that are identified by a label, such as the name of a bank.
func (p Page) labelled() bool {
	return p.Extract.Rows != nil || p.Extract.Text != nil && len(p.Extract.Text.Labels) > 0
}

package source

import (
	"regexp"

	"github.com/tasard/tasard/engine/jsonfile"
)

// Evidence names the programs that have read a site as its definition does, and says when. It is for people.
type Evidence struct {
	Grade  Grade  // "" = unknown, in a definition of the operator
	Seen   string // when the site last had this shape: a day, a month or a year, as 2026-09-17, 2026-09 or 2026
	By     string // public programs, with their files and dates
	Sample string // the real answer that the definition parses, and where it is; "" = none is known
}

// Grade is how much is known of a definition.
type Grade string

// The grades. A source whose definition is Old is disabled unless the operator enables it.
const (
	Confirmed Grade = "confirmed" // a stored real answer of the last 12 months parses
	Reported  Grade = "reported"  // public programs agree on shape and selectors, and one of them is newer than 2024
	Old       Grade = "old"       // no program is known to have read it since 2024
)

// oldYear is the last year in which a definition counts as old.
const oldYear = "2024"

var seenPattern = regexp.MustCompile(`^20[0-9]{2}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01]))?)?$`)

// evidence reads the key "evidence".
func (o *object) evidence() (e Evidence) {
	o.part("evidence", func(part *object) {
		e = Evidence{
			Grade: jsonfile.RequiredEnum(part.Object, "grade", []Grade{Confirmed, Reported, Old}), Seen: part.Required("seen", "", part.shortText),
			By: part.Required("by", "; name the program or person that has read the site", func(key string) string { return part.Text(key, textMax) }), Sample: part.Text("sample", textMax),
		}
		switch {
		case e.Seen == "":
		case !seenPattern.MatchString(e.Seen):
			part.Errorf("seen %.20q is not a date; write 2026-09-17, 2026-09 or 2026", e.Seen)
		case e.Grade != "" && (e.Grade == Old) != (e.Seen[:len(oldYear)] <= oldYear):
			part.Errorf("grade is %s, but the site was seen %s; %s means: not since %s", e.Grade, e.Seen, Old, oldYear)
		}
		if e.Grade == Confirmed && e.Sample == "" {
			part.Errorf("grade is %s, but sample is missing; say which answer parses, or write %s", e.Grade, Reported)
		}
	})
	return e
}

// OldReason returns the reason why a source with old evidence is disabled, or "". It is Definition.Disabled if the file
// says nothing else.
func (e *Evidence) OldReason() string {
	if e.Grade != Old {
		return ""
	}
	return "Old: last seen " + e.Seen + `. A file with this id and "disabled": "" enables it.`
}

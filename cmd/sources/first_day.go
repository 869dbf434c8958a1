package sources

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/httpapi/admin"
)

// advise sets two texts of each failing report: where the source's rates come from meanwhile, and the next command.
func advise(reports []sourceReport, definitions []*source.Definition) {
	for i := range reports {
		if s, d := &reports[i], definitions[i]; s.Verdict != fine {
			s.Meanwhile, s.Next = meanwhile(s, d, reports), s.next(d)
		}
	}
}

// meanwhile names another source for the institution's rates, or the time when its last rates become stale.
func meanwhile(s *sourceReport, d *source.Definition, reports []sourceReport) string {
	stale := fmt.Sprintf("stale %v after they were last read", strings.TrimSuffix(d.Expiry.AfterCheck.String(), "0m0s"))
	if d.Institution == "" {
		return "those that no other source gives are " + stale
	}
	var others []string
	for i := range reports {
		if other := &reports[i]; other.Source != s.Source && slices.ContainsFunc(other.Rates, func(o admin.SourceRate) bool {
			return o.InstitutionID == d.Institution && cmp.Or(o.Kind, "commercial") == cmp.Or(d.Kind, "commercial")
		}) {
			others = append(others, other.Source)
		}
	}
	if len(others) > 0 {
		return strings.Join(others, " and ") + " stands in"
	}
	return stale
}

// next returns the next command for a source that is not ok.
func (s *sourceReport) next(d *source.Definition) string {
	isSearched := (d.Institution != "" || d.Pages[0].Institution != "") && d.Pages[0].Extract.Method != source.XLSXRows
	switch s.Verdict {
	case changed, partial, noPrices:
		if isSearched {
			return "tasard sources suggest " + s.Source + " --data DIR"
		}
		return "tasard definitions show " + s.Source
	case blocked:
		return "save the page in a browser, then: tasard import --data DIR --source " + s.Source + " FILE"
	case unreachable:
		return "tasard sources check " + s.Source + ", and look at DNS and firewall"
	case failed:
		return "tasard sources check " + s.Source + " --json, and report it"
	case fine:
	}
	return ""
}

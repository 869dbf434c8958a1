package intake

import (
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
)

// F12: a file that is read beside readers is read in small pieces, and comes out the same.
func TestF12_AFileIsReadInPieces(t *testing.T) {
	text := header + strings.Repeat(observation(1, "59", "60")+"x\n"+observation(2, "quarantined", "60"), 400)
	whole := &fileImport{sink: &fakeSink{}, clock: tickingClock(), report: &recordedReport{}}
	if err := whole.importFile(t.Context(), inputOf(text), collectors.CSV); err != nil {
		t.Fatal(err)
	}
	pauses := 0
	cut := &fileImport{sink: &fakeSink{}, clock: tickingClock(), report: &recordedReport{}, pause: func() { pauses++ }}
	if err := cut.importFile(t.Context(), inputOf(text), collectors.CSV); err != nil {
		t.Fatal(err)
	}
	if cut.counts != whole.counts {
		t.Errorf("in pieces %+v, as a whole %+v", cut.counts, whole.counts)
	}
	if want := len(text) / pacedBytesMax; pauses < want {
		t.Errorf("%d pauses in %d bytes, want %d at least", pauses, len(text), want)
	}
}

// F12: an import from many unknown sources does not keep readers waiting while it warns about them.
func TestF12_WarningsArePaced(t *testing.T) {
	pauses, report := 0, &recordedReport{}
	f := &fileImport{report: report, sources: engine.DefaultCatalogue(), pause: func() { pauses++ }}
	f.warnUnknownSources(&lineBatch{refreshes: []engine.Refresh{{SourceID: "x"}, {SourceID: "y"}, {SourceID: "x"}}, lines: [][]int{{1}, {2}, {3}}}, "file")
	if pauses != 2 {
		t.Errorf("%d pauses, want one after each of 2 warnings", pauses)
	}
}

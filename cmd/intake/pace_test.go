package intake

import (
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors"
)

// F12: a file that is read beside readers is read in small pieces, and comes out the same.
func TestF12_AFileIsReadInPieces(t *testing.T) {
	text := header + strings.Repeat(observation(1, "59", "60")+"x\n"+observation(2, "held", "60"), 400)
	whole := &intake{to: &doubtful{}, clock: ticking(), report: &heard{}}
	if err := whole.take(t.Context(), inputOf(text), collectors.CSV); err != nil {
		t.Fatal(err)
	}
	pauses := 0
	cut := &intake{to: &doubtful{}, clock: ticking(), report: &heard{}, pause: func() { pauses++ }}
	if err := cut.take(t.Context(), inputOf(text), collectors.CSV); err != nil {
		t.Fatal(err)
	}
	if cut.tally != whole.tally {
		t.Errorf("in pieces %+v, as a whole %+v", cut.tally, whole.tally)
	}
	if want := len(text) / pacedBytesMax; pauses < want {
		t.Errorf("%d pauses in %d bytes, want %d at least", pauses, len(text), want)
	}
}

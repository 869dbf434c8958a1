package intake

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestReport_Progress(t *testing.T) {
	p := importProgress{lineCounts: lineCounts{lines: 1234, elapsed: 2 * time.Second}, file: "o.csv", bytes: 50, size: 200}
	var lines bytes.Buffer
	r := &terminalReport{out: &lines, clock: tickingClock()}
	r.progress(p) // the first one is overdue
	for range 4 {
		r.progress(p) // a second each: not yet
	}
	r.progress(p)
	if want := strings.Repeat("o.csv: 25 %, 1,234 lines, 617 a second\n", 2); lines.String() != want {
		t.Errorf("got %q, want %q", lines.String(), want)
	}
	var terminal bytes.Buffer
	r = &terminalReport{out: &terminal, terminal: true, clock: tickingClock()}
	r.progress(p)
	if err := r.rejected(rejectedLine{File: "o.csv", Line: 3, Outcome: malformed, Detail: "why"}); err != nil {
		t.Fatal(err)
	}
	text := "o.csv: 25 %, 1,234 lines, 617 a second"
	if want := fmt.Sprintf("%s\r%s\ro.csv:3: malformed: why\n", text, strings.Repeat(" ", len(text))); terminal.String() != want {
		t.Errorf("got %q, want %q", terminal.String(), want)
	}
}

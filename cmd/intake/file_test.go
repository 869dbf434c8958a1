package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/engine"
)

// fakeSink is an intake that refuses each observation whose buy side says so, and can fail.
type fakeSink struct {
	calls int
	fails int // which call, 0 = none
}

func (d *fakeSink) Observe(refreshes []engine.Refresh) (engine.Receipt, error) {
	d.calls++
	if d.calls == d.fails {
		return engine.Receipt{}, &engine.Error{Code: engine.CodeReadOnly, Message: "the disk is full"}
	}
	var receipt engine.Receipt
	for i, refresh := range refreshes {
		for j, o := range refresh.Observations {
			switch o.Buy {
			case "quarantined":
				receipt.Refused = append(receipt.Refused, engine.Refusal{Refresh: i, Index: j, Reason: engine.Zero, Detail: "why", QuarantineID: 7})
			case "refused":
				receipt.Refused = append(receipt.Refused, engine.Refusal{Refresh: i, Index: j, Reason: engine.UnknownCurrency, Detail: "why"})
			default:
				receipt.Accepted++
			}
		}
	}
	slices.Reverse(receipt.Refused) // an order of its own
	return receipt, nil
}

// recordedReport keeps what it receives.
type recordedReport struct {
	report
	lines    []string
	progress []string
}

func record() *recordedReport {
	r := &recordedReport{}
	keep := func(text string) { r.lines = append(r.lines, text) }
	r.report = report{
		warn: keep, rejected: func(l rejectedLine) { keep(l.String()) },
		progress: func(text string) { r.progress = append(r.progress, text) },
	}
	return r
}

// tickingClock is a clock that moves five seconds each time it is read.
func tickingClock() func() time.Time {
	now := time.Date(2026, 6, 30, 15, 0, 0, 0, time.UTC)
	return func() time.Time {
		now = now.Add(5 * time.Second)
		return now
	}
}

func inputOf(text string) *process.Input {
	return &process.Input{ReadCloser: io.NopCloser(strings.NewReader(text)), Name: "o.csv"}
}

// TestIntake_NothingIsLost wants every line of any file to be counted once, across hand-overs, and the progress to be
// reported every ten seconds.
func TestIntake_NothingIsLost(t *testing.T) {
	var text strings.Builder
	text.WriteString(header)
	const count = 3*batchObservationsMin + 17
	for i := range count {
		buy := []string{"59", "quarantined", "refused"}[i%3]
		if i%7 == 0 {
			text.WriteString("x\n")
			continue
		}
		text.WriteString(observation(i/1000, buy, "60"))
	}
	recorded := record()
	to := &fakeSink{}
	in := &fileImport{sink: to, clock: tickingClock(), report: &recorded.report}
	if err := in.importFile(t.Context(), inputOf(text.String())); err != nil {
		t.Fatal(err)
	}
	c := in.counts
	if c.lines != count || c.accepted+c.quarantined+c.refused+c.malformed != count || len(recorded.lines) != count-c.accepted || to.calls < 3 {
		t.Errorf("%+v of %d lines, %d recorded, %d hand-overs", c, count, len(recorded.lines), to.calls)
	}
	if len(recorded.progress) != 1 || !strings.HasSuffix(recorded.progress[0], " lines so far, in 10s") {
		t.Errorf("the progress is %q", recorded.progress)
	}
	if c.malformed != (count+6)/7 {
		t.Errorf("%d malformed lines, want %d", c.malformed, (count+6)/7)
	}
}

func TestIntake_StopsWhenTheSystemDoes(t *testing.T) {
	in := &fileImport{sink: &fakeSink{fails: 1}, clock: tickingClock(), report: &record().report}
	err := in.importFile(t.Context(), inputOf(header+observation(1, "59", "60")))
	if err == nil || !strings.Contains(err.Error(), "o.csv from line 2: read_only") || exit.Code(err) != exit.CannotWrite {
		t.Errorf("%v, exit code %d", err, exit.Code(err))
	}
}

// TestIntake_BrokenStream wants the lines before the break to be imported, and the break to be reported.
func TestIntake_BrokenStream(t *testing.T) {
	broken := io.MultiReader(strings.NewReader(header+observation(1, "59", "60")+observation(2, "59", "60")), failing{})
	in := &fileImport{sink: &fakeSink{}, clock: tickingClock(), report: &record().report}
	err := in.importFile(t.Context(), &process.Input{ReadCloser: io.NopCloser(broken), Name: "o.csv"})
	if exit.Code(err) != exit.IOError || in.counts.accepted != 1 {
		t.Errorf("%v, exit code %d, %d accepted", err, exit.Code(err), in.counts.accepted)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the cable is cut") }

// TestIntake_UnknownSource wants each source that the catalogue lacks to be reported once, and its lines accepted all
// the same.
func TestIntake_UnknownSource(t *testing.T) {
	recorded := record()
	in := &fileImport{sink: &fakeSink{}, clock: tickingClock(), report: &recorded.report, sources: engine.DefaultCatalogue()}
	rows := strings.ReplaceAll(observation(1, "59", "60")+observation(2, "59", "60"), "popular-site", "popular-sitio")
	if err := in.importFile(t.Context(), inputOf(header+rows)); err != nil {
		t.Fatal(err)
	}
	if len(recorded.lines) != 1 || !strings.Contains(recorded.lines[0], "the catalogue has no source") {
		t.Errorf("asked %q", recorded.lines)
	}
}

// TestInput_InterruptedStreamKeepsWhatCame wants what came before the interrupt to be in.
func TestInput_InterruptedStreamKeepsWhatCame(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	texts := []string{header + observation(1, "59", "60") + observation(2, "59", "60"), observation(3, "59", "60")}
	stdin := &cancellingReader{texts, cancel, make(chan struct{})}
	defer close(stdin.wait)
	in := &fileImport{sink: &fakeSink{}, clock: tickingClock(), report: &record().report}
	err := in.importFile(ctx, &process.Input{ReadCloser: io.NopCloser(stdin), Name: "stdin", Blocking: true})
	if exit.Code(err) != exit.Interrupted || in.counts.accepted == 0 {
		t.Errorf("%v, exit code %d, %d accepted", err, exit.Code(err), in.counts.accepted)
	}
}

// cancellingReader is a stream that returns one text for each read; when all are read, and all but the last
// submitted, it cancels and waits.
type cancellingReader struct {
	texts  []string
	cancel context.CancelFunc
	wait   chan struct{}
}

func (l *cancellingReader) Read(into []byte) (int, error) {
	if len(l.texts) == 0 {
		l.cancel()
		<-l.wait
		return 0, io.EOF
	}
	n := copy(into, l.texts[0])
	l.texts = l.texts[1:]
	return n, nil
}

// header is the first line of a CSV file of observations.
const header = "observedAt,institutionId,currency,channel,kind,buy,sell,sourceId,effectiveDate,publishedAt\n"

// observation is a valid line of a CSV file.
func observation(minute int, buy, sell string) string {
	return fmt.Sprintf("2026-06-30T14:%02d:00Z,popular,USD,,,%s,%s,popular-site,,\n", minute, buy, sell)
}

// TestSummary_TellsOfPublishedRates: the summary of an import counts the published rates that its values have withdrawn
// or confirmed.
func TestSummary_TellsOfPublishedRates(t *testing.T) {
	c := lineCounts{lines: 3}
	c.addReceipt(&engine.Receipt{Accepted: 3, Changed: 3, Notices: make([]engine.Notice, 2)}, nil)
	if got := c.String(); !strings.HasSuffix(got, "; 2 published rates withdrawn or confirmed by others, as the warnings say") {
		t.Error(got)
	}
	if got := (&lineCounts{lines: 3}).String(); strings.Contains(got, "published") {
		t.Error(got)
	}
}

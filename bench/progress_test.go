package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// watched is progress with a clock that a test moves, and what a terminal shows of it.
type watched struct {
	*progress
	out *bytes.Buffer
	now time.Time
}

func watch(terminal bool, stages ...stage) *watched {
	w := &watched{out: new(bytes.Buffer), now: time.Date(2026, time.November, 21, 18, 0, 0, 0, time.UTC)}
	w.progress = newProgress(w.out, func() time.Time { return w.now }, stages)
	w.terminal = terminal
	return w
}

func (w *watched) pass(d time.Duration) { w.now = w.now.Add(d) }

// screen is the line as it stands on the terminal.
func (w *watched) screen() string {
	var line []rune
	at := 0
	for _, r := range w.out.String() {
		switch {
		case r == '\r':
			at = 0
		case at < len(line):
			line[at] = r
			at++
		default:
			line = append(line, r)
			at++
		}
	}
	return strings.TrimRight(string(line), " ")
}

func twoStages() []stage {
	return []stage{
		{goal: "F1", title: "The best ten rates", rounds: 3, each: 10 * time.Second},
		{goal: "F2", title: "The full page", rounds: 2, each: 10 * time.Second},
	}
}

func TestProgress_OnATerminalOneLineIsRewritten(t *testing.T) {
	w := watch(true, twoStages()...)
	w.pass(5 * time.Second) // preparing
	w.begin("F1")
	shows := func(want string) {
		t.Helper()
		if got := w.screen(); got != want {
			t.Errorf("the terminal shows %q, want %q", got, want)
		}
	}
	shows("")
	w.next()
	shows("round 1 of 3, F1, 5s elapsed, about 50s left")
	w.pass(20 * time.Second) // twice as long as planned
	w.next()
	shows("round 2 of 3, F1, 25s elapsed, about 1m20s left")
	w.pass(20 * time.Second)
	w.next()
	w.pass(20 * time.Second)
	w.begin("F2")
	w.next()
	shows("round 1 of 2, F2, 1m5s elapsed, about 40s left")
	w.pass(10 * time.Second)
	w.show()
	shows("round 1 of 2, F2, 1m15s elapsed, about 30s left")
	if strings.Contains(w.out.String(), "\n") {
		t.Errorf("the terminal got more than one line: %q", w.out.String())
	}
	w.end()
	shows("")
	before := w.out.Len()
	w.end()
	if w.out.Len() != before {
		t.Error("a second end writes again")
	}
}

func TestProgress_ElsewhereOneLineForEachGoal(t *testing.T) {
	w := watch(false, twoStages()...)
	w.begin("F1")
	for range 3 {
		w.next()
		w.show()
		w.pass(10 * time.Second)
	}
	w.begin("F2")
	w.next()
	w.end()
	want := "F1  The best ten rates: 3 rounds, 0s elapsed, about 50s left\nF2  The full page: 2 rounds, 30s elapsed, about 20s left\n"
	if got := w.out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgress_AtMostAFewTimesASecond(t *testing.T) {
	w := watch(true, stage{goal: "F1", rounds: 10_000, each: time.Millisecond})
	w.begin("F1")
	for range 10_000 { // ten seconds
		w.next()
		w.pass(time.Millisecond)
	}
	most := int(10*time.Second/progressEvery) + 1
	if n := strings.Count(w.out.String(), "\r"); n < most/2 || n > most {
		t.Errorf("the line was written %d times in ten seconds, want about %d", n, most)
	}
}

func TestProgress_SkippedGoalsTakeNoTime(t *testing.T) {
	stages := append([]stage{{goal: "F0", rounds: 1000, each: time.Hour}}, twoStages()...)
	w := watch(true, stages...)
	w.begin("F1") // F0 was not measured
	w.next()
	w.pass(10 * time.Second)
	w.next()
	if got, want := w.screen(), "round 2 of 3, F1, 10s elapsed, about 40s left"; got != want {
		t.Errorf("the terminal shows %q, want %q", got, want)
	}
	w.begin("F9") // was never announced
	w.pass(time.Second)
	w.next()
	if got, want := w.screen(), "round 3 of 3, F1, 11s elapsed"; !strings.HasPrefix(got, want) {
		t.Errorf("the terminal shows %q, want %q", got, want)
	}
}

func TestProgress_NothingBeforeTheFirstStage(t *testing.T) {
	w := watch(true, twoStages()...)
	w.next()
	w.show()
	w.end()
	if w.out.Len() > 0 {
		t.Errorf("wrote %q", w.out.String())
	}
}

func TestProgress_NeverWraps(t *testing.T) {
	w := watch(true, stage{goal: strings.Repeat("µ", 200), rounds: 1})
	w.begin(strings.Repeat("µ", 200))
	w.next()
	w.pass(time.Second)
	w.next() // one more than announced
	if n := utf8.RuneCountInString(w.screen()); n > progressWidth {
		t.Errorf("a line of %d characters, at most %d", n, progressWidth)
	}
}

func TestProgress_AFileIsNoTerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if isTerminal(file) || isTerminal(new(bytes.Buffer)) {
		t.Error("a file or a buffer is taken for a terminal")
	}
}

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// watched is progress with a clock that a test moves, and what a terminal shows of it.
type watched struct {
	*progress
	out bytes.Buffer
	now time.Time
}

func watch(terminal bool) *watched {
	w := &watched{now: time.Date(2026, time.November, 21, 18, 0, 0, 0, time.UTC)}
	w.progress = newProgress(&w.out, func() time.Time { return w.now }, []stage{
		{goal: "F0", title: "Not measured", rounds: 1000, each: time.Hour},
		{goal: "F1", title: "The best ten rates", rounds: 3, each: 10 * time.Second},
		{goal: "F2", title: "The full page", rounds: 2, each: 10 * time.Second},
	})
	w.terminal = terminal
	return w
}

// On a terminal one line is rewritten, a few times a second at most. Goals that are left out take no time.
func TestProgress_OnATerminal(t *testing.T) {
	w := watch(true)
	w.next() // nothing has begun
	w.end()
	for _, step := range []struct {
		goal  string // that begins, "" for another round
		after time.Duration
		want  string // of the terminal's line, from its last start on; "" when it stays
	}{
		{"F1", 5 * time.Second, ""},
		{"", 0, "round 1 of 3, F1, 5s elapsed, about 50s left"},
		{"", progressEvery - 1, ""},
		{"", 20*time.Second - progressEvery + 1, "round 3 of 3, F1, 25s elapsed, about 30s left"},
		{"F9", 0, ""}, // was never announced
		{"F2", 5 * time.Second, ""},
		{"", 0, "round 1 of 2, F2, 30s elapsed, about 17s left"},
	} {
		w.now = w.now.Add(step.after)
		before := w.out.Len()
		if step.goal != "" {
			w.begin(step.goal)
		} else {
			w.next()
		}
		if got := strings.TrimPrefix(w.out.String()[before:], "\r"); strings.TrimRight(got, " ") != strings.TrimRight(step.want, " ") {
			t.Errorf("%+v: the terminal got %q", step, got)
		}
	}
	w.end()
	if text := w.out.String(); strings.Contains(text, "\n") || !strings.HasSuffix(text, " \r") {
		t.Errorf("the terminal got %q, want one line that is taken away", text)
	}
}

func TestProgress_Elsewhere(t *testing.T) {
	w := watch(false)
	w.begin("F1")
	for range 3 {
		w.next()
		w.now = w.now.Add(10 * time.Second)
	}
	w.begin("F2")
	w.next()
	w.end()
	want := "F1  The best ten rates: 3 rounds, 0s elapsed, about 50s left\nF2  The full page: 2 rounds, 30s elapsed, about 20s left\n"
	if got := w.out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	file, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if isTerminal(file) || isTerminal(&w.out) {
		t.Error("a file or a buffer is taken for a terminal")
	}
}

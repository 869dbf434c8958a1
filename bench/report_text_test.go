package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestReportText_Says(t *testing.T) {
	text := written(t, sampleReport().writeText)
	for _, want := range []string{
		"AMD EPYC 7B13, 2 cores, 7.75 GiB of memory", "4f2a9c1d7b3e with changes that are not committed",
		"F1  The best ten rates, with a key",
		"met    requests/s, node to bare                           0.93×  ≥ 0.90×       (0.93–0.94)",
		"short: 1.15 of 1.12; half of the difference is the look-up of the key",
		"short: 0.899 of 0.90;", // not "0.90 of 0.90"
		"bare about 30,000/s, node about 30,000/s", "bare about 30 µs, node about 40 µs",
		"F6, nginx: nginx is not installed: apt-get install nginx-light",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if lines := strings.Split(strings.TrimSpace(text), "\n"); lines[len(lines)-1] != "9 of 12 bounds met; short: F1, F2, F12; 2 not measured" {
		t.Errorf("the last line is %q", lines[len(lines)-1])
	}
	if before, _, _ := strings.Cut(text, "F1"); !strings.Contains(before, "Machine: ") || !strings.Contains(before, "Commit: ") {
		t.Errorf("machine and commit do not come first:\n%s", before)
	}
}

func TestReportText_FitsTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		if err := anyReport(t).writeText(&out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > textWidth {
				t.Fatalf("a line of %d characters, at most %d: %q", n, textWidth, line)
			}
			if strings.ContainsFunc(line, unicode.IsControl) {
				t.Fatalf("a line moves the cursor: %q", line)
			}
		}
	})
}

func TestReportText_ColoursOnlyRepeatWords(t *testing.T) {
	coloured, bare := &textPage{colours: true}, &textPage{}
	sampleReport().text(coloured)
	sampleReport().text(bare)
	if !strings.Contains(coloured.out.String(), colourRed+"short"+colourEnd) {
		t.Error("a bound that is missed has no colour")
	}
	stripped := strings.NewReplacer(colourBold, "", colourGreen, "", colourRed, "", colourEnd, "").Replace(coloured.out.String())
	if stripped != bare.out.String() {
		t.Error("without its colours the report differs from the one without colours")
	}
	if text := written(t, sampleReport().writeText); text != bare.out.String() {
		t.Error("what is written to a buffer has colours")
	}
}

func TestReportText_Wrap(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 4, []string{""}},
		{"abcd", 4, []string{"abcd"}},
		{"ab cd", 4, []string{"ab", "cd"}},
		{"ab  cd ef", 5, []string{"ab", "cd ef"}},
		{"abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		{"µµ µµ", 3, []string{"µµ", "µµ"}},
		{"a\nb", 9, []string{"a b"}},
	} {
		if got := wrap(tt.text, tt.width); strings.Join(got, "|") != strings.Join(tt.want, "|") {
			t.Errorf("wrap(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

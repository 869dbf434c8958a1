package httpapi

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// cost is what one request takes of the node.
type cost struct{ instructions, allocations int }

// costList is what was measured, and what it depends on besides the program.
type costList struct {
	release string // of Go: another one makes other instructions
	counter string // valgrind, and what it knows of the processor: code that asks for it goes another way
	costs   map[string]cost
}

// riseMax is how much more instructions a request may take than is accepted, in thousandths. Counts repeat within 5.
const riseMax = 30

var errCosts = errors.New("not a list of costs")

// readCosts reads what write has written.
func readCosts(r io.Reader) (*costList, error) {
	list := &costList{costs: map[string]cost{}}
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := list.take(words); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errCosts, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errCosts, err)
	}
	if list.release == "" || list.counter == "" || len(list.costs) == 0 {
		return nil, fmt.Errorf("%w: it needs a line that begins with go, one with counter, and one for each request", errCosts)
	}
	return list, nil
}

// take reads the words of one line.
func (l *costList) take(words []string) error {
	switch {
	case words[0] == "go" && len(words) == 2 && l.release == "":
		l.release = words[1]
		return nil
	case words[0] == "counter" && len(words) > 1 && l.counter == "":
		l.counter = strings.Join(words[1:], " ")
		return nil
	case len(words) != 3:
		return fmt.Errorf("%q; want a request, its instructions and its allocations", strings.Join(words, " "))
	}
	instructions, wrong := strconv.ParseUint(words[1], 10, 31)
	allocations, too := strconv.ParseUint(words[2], 10, 31)
	if wrong != nil || too != nil || instructions == 0 {
		return fmt.Errorf("%q; want whole numbers", strings.Join(words, " "))
	}
	if _, twice := l.costs[words[0]]; twice {
		return fmt.Errorf("%s is there twice", words[0])
	}
	l.costs[words[0]] = cost{int(instructions), int(allocations)}
	return nil
}

// costsHead explains the file to whoever opens it.
const costsHead = `# What one request costs the node: instructions of user space, and allocations.
# make bench-check fails when instructions rise by more than 3 %, or allocations at all.
# make bench-accept measures again and writes this file: do it for a rise that is meant, and say in the commit why; do it for a
# fall as well, so that what was won stays.
# Instructions are compared as they are, so the Go release must be the same but for its last number. Another counter (valgrind
# shows programs a processor of its own) can move them a little; then the check says so.
`

// write writes the list, with a comment.
func (l *costList) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%sgo %s\ncounter %s\n\n%-14s %12s %11s\n", costsHead, l.release, l.counter, "# request", "instructions", "allocations")
	for _, name := range slices.Sorted(maps.Keys(l.costs)) {
		_, wrong := fmt.Fprintf(w, "%-14s %12d %11d\n", name, l.costs[name].instructions, l.costs[name].allocations)
		err = cmp.Or(err, wrong)
	}
	return err
}

// minor is a Go release without its last number: go1.26.8 is go1.26.
func minor(release string) string {
	parts := strings.SplitN(release, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// permille is how much more is than was.
func permille(is, was int) int { return (is - was) * 1000 / was }

// judge holds what was found against what is accepted. Problems are what fails the check; notes are for whoever looks.
func (l *costList) judge(found *costList) (problems, notes []string) {
	if minor(l.release) != minor(found.release) {
		return []string{fmt.Sprintf("the accepted costs are those of %s, and this is %s: compare both releases on the commit before "+
			"(make bench-instructions), then accept with make bench-accept", l.release, found.release)}, nil
	}
	for _, name := range slices.Sorted(maps.Keys(found.costs)) {
		was, known := l.costs[name]
		if !known {
			problems = append(problems, name+": no cost is accepted yet; make bench-accept")
			continue
		}
		is := found.costs[name]
		rise := permille(is.instructions, was.instructions)
		switch {
		case (is.instructions-was.instructions)*1000 > riseMax*was.instructions:
			problems = append(problems, fmt.Sprintf("%s: %d instructions, %d are accepted: %s", name, is.instructions, was.instructions, percent(rise)))
		case rise < -riseMax:
			notes = append(notes, fmt.Sprintf("%s: %s instructions; make bench-accept keeps it so", name, percent(rise)))
		}
		if is.allocations > was.allocations {
			problems = append(problems, fmt.Sprintf("%s: %d allocations, %d are accepted", name, is.allocations, was.allocations))
		}
	}
	if l.counter != found.counter {
		notes = append(notes, fmt.Sprintf("the accepted costs were counted with %q, these with %q: differences can come from that", l.counter, found.counter))
	}
	return problems, notes
}

// missing are requests that are accepted and were not measured.
func (l *costList) missing(found *costList) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(l.costs)) {
		if _, measured := found.costs[name]; !measured {
			names = append(names, name)
		}
	}
	return names
}

// percent writes thousandths with their sign.
func percent(thousandths int) string {
	sign := "+"
	if thousandths < 0 {
		sign, thousandths = "-", -thousandths
	}
	return fmt.Sprintf("%s%d.%d %%", sign, thousandths/10, thousandths%10)
}

func listOf(costs map[string]cost) *costList {
	return &costList{release: "go1.26.8", counter: "valgrind-3.19.0 avx2", costs: costs}
}

// TestCosts_Judge: a rise above 3 % fails, and so does one allocation more.
func TestCosts_Judge(t *testing.T) {
	accepted := listOf(map[string]cost{"best": {20_000, 0}, "convert": {30_000, 2}})
	for name, c := range map[string]struct {
		change        func(*costList)
		problem, note string
	}{
		"the same":               {change: func(*costList) {}},
		"as much as may be":      {change: func(l *costList) { l.costs["best"] = cost{20_600, 0} }},
		"one instruction more":   {change: func(l *costList) { l.costs["best"] = cost{20_601, 0} }, problem: "best: 20601 instructions, 20000 are accepted: +3.0 %"},
		"two per cent":           {change: func(l *costList) { l.costs["best"] = cost{20_400, 0} }},
		"four per cent":          {change: func(l *costList) { l.costs["convert"] = cost{31_200, 2} }, problem: "convert: 31200 instructions, 30000 are accepted: +4.0 %"},
		"an allocation":          {change: func(l *costList) { l.costs["best"] = cost{20_000, 1} }, problem: "best: 1 allocations, 0 are accepted"},
		"an allocation less":     {change: func(l *costList) { l.costs["convert"] = cost{30_000, 1} }},
		"a fall":                 {change: func(l *costList) { l.costs["best"] = cost{15_000, 0} }, note: "best: -25.0 % instructions; make bench-accept"},
		"a request that is new":  {change: func(l *costList) { l.costs["other"] = cost{1, 0} }, problem: "other: no cost is accepted"},
		"a release of Go":        {change: func(l *costList) { l.release = "go1.27.0" }, problem: "the accepted costs are those of go1.26.8, and this is go1.27.0"},
		"a last number":          {change: func(l *costList) { l.release = "go1.26.9" }},
		"another processor":      {change: func(l *costList) { l.counter = "valgrind-3.22.0" }, note: "differences can come from that"},
		"a release, and a rise":  {change: func(l *costList) { l.release, l.costs["best"] = "go1.25", cost{90_000, 9} }, problem: "this is go1.25"},
		"measured in part alone": {change: func(l *costList) { delete(l.costs, "best") }},
	} {
		t.Run(name, func(t *testing.T) {
			found := listOf(map[string]cost{"best": {20_000, 0}, "convert": {30_000, 2}})
			c.change(found)
			problems, notes := accepted.judge(found)
			checkTold(t, "problem", problems, c.problem)
			checkTold(t, "note", notes, c.note)
		})
	}
	if got := accepted.missing(listOf(map[string]cost{"best": {1, 0}})); !slices.Equal(got, []string{"convert"}) {
		t.Error(got)
	}
}

// checkTold wants one line that has the words, and none for "".
func checkTold(t *testing.T, what string, lines []string, words string) {
	t.Helper()
	if words == "" && len(lines) > 0 || words != "" && (len(lines) != 1 || !strings.Contains(lines[0], words)) {
		t.Errorf("%s: %q, want %q", what, lines, words)
	}
}

// TestCosts_Read: what was written is read, and nothing else is a list.
func TestCosts_Read(t *testing.T) {
	want := listOf(map[string]cost{"best": {20_000, 0}, "convert": {30_000, 2}})
	var text strings.Builder
	if err := want.write(&text); err != nil {
		t.Fatal(err)
	}
	got, err := readCosts(strings.NewReader(text.String()))
	if err != nil || got.release != want.release || got.counter != want.counter || !maps.Equal(got.costs, want.costs) {
		t.Errorf("%+v %v from %s", got, err, text.String())
	}
	for _, wrong := range []string{
		"", "go go1.26\n", "go go1.26\ncounter x\n", "counter x\nbest 1 1\n", "go go1.26\nbest 1 1\n", "go go1.26\ncounter x\nbest 1\n",
		"go go1.26\ncounter x\nbest 0 1\n", "go go1.26\ncounter x\nbest 1 -1\n", "go go1.26\ncounter x\nbest 1.5 0\n",
		"go go1.26\ncounter x\nbest 1 0\nbest 1 0\n", "go go1.26\ngo go1.26\ncounter x\nbest 1 0\n", "go go1.26\ncounter x\nbest 99999999999 0\n",
	} {
		if list, err := readCosts(strings.NewReader(wrong)); !errors.Is(err, errCosts) {
			t.Errorf("%q is read as %+v, %v", wrong, list, err)
		}
	}
}

// FuzzCosts: whatever is read can be written and read again.
func FuzzCosts(f *testing.F) {
	f.Add("go go1.26\ncounter x\nbest 1 0\n")
	f.Add("# a comment\n\ngo go1.26.8\ncounter valgrind-3.19.0 avx2\nbest 20000 0\nconvert 30000 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := readCosts(strings.NewReader(text))
		if err != nil {
			return
		}
		var again strings.Builder
		if err := list.write(&again); err != nil {
			t.Fatal(err)
		}
		second, err := readCosts(strings.NewReader(again.String()))
		if err != nil || second.release != list.release || second.counter != list.counter || !maps.Equal(second.costs, list.costs) {
			t.Errorf("%+v, then %+v %v", list, second, err)
		}
		if problems, notes := list.judge(second); len(problems)+len(notes) > 0 {
			t.Errorf("%q %q", problems, notes)
		}
	})
}

package main

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"unicode"
)

// writeBenchstat writes the report in Go's benchmark format, one line for each round, for benchstat:
//
//	BenchmarkF1/requests_s_node_to_bare 1 0.93 ratio
//	BenchmarkF1/requests_s_node_to_bare/side=node 1 27345 req/s
//
// "benchstat old.txt new.txt" compares two reports, "benchstat -col /side new.txt" the sides of one. Where the rounds of a figure
// are not known it has one line, of its median.
func (r *report) writeBenchstat(w io.Writer) error {
	if err := r.check(); err != nil {
		return fmt.Errorf("write the report for benchstat: %w", err)
	}
	out := bufio.NewWriter(w) // keeps the first error until Flush
	_, _ = fmt.Fprintf(out, "goos: %s\ngoarch: %s\npkg: github.com/tasard/tasard/bench\n", runtime.GOOS, runtime.GOARCH)
	_, _ = fmt.Fprintf(out, "cpu: %s\ncommit: %s\nstarted: %s\n", plain(r.Machine.CPU), plain(r.shortCommit()), stamp(r.Started))
	r.benchUnits(out)
	names := map[string]bool{}
	for _, g := range r.Goals {
		for i := range g.Measures {
			m := &g.Measures[i]
			m.benchLines(out, unique(names, "Benchmark"+strings.ToUpper(benchName(g.ID))+"/"+benchName(m.Name)))
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the report for benchstat: %w", err)
	}
	return nil
}

// benchUnits says of each unit with a bound which way is better. A unit that has both kinds is left to the reader.
func (r *report) benchUnits(out io.Writer) {
	better := map[string]string{}
	for _, g := range r.Goals {
		for i := range g.Measures {
			m := &g.Measures[i]
			side := "lower"
			if m.AtLeast {
				side = "higher"
			}
			unit := benchUnit(m.Unit)
			if earlier, seen := better[unit]; m.Free || seen && earlier != side {
				side = ""
			}
			better[unit] = side
		}
	}
	for _, unit := range sortedKeys(better) {
		if side := better[unit]; side != "" {
			_, _ = fmt.Fprintf(out, "Unit %s better=%s\n", unit, side)
		}
	}
}

func (m *measure) benchLines(out io.Writer, name string) {
	line := func(name string, v float64, unit string) {
		_, _ = fmt.Fprintf(out, "%s 1 %s %s\n", name, strconv.FormatFloat(v, 'g', -1, 64), unit)
	}
	rounds := m.Rounds
	if len(rounds) == 0 {
		rounds = []float64{m.Value}
	}
	for _, v := range rounds {
		line(name, v, benchUnit(m.Unit))
	}
	for _, side := range sortedKeys(m.Absolute) {
		if len(m.Sides[side]) == 0 {
			line(name+"/side="+benchName(side), m.Absolute[side], benchUnit(m.AbsoluteUnit))
		}
	}
	for _, side := range sortedKeys(m.Sides) {
		for _, v := range m.Sides[side] {
			line(name+"/side="+benchName(side), v, benchUnit(m.AbsoluteUnit))
		}
	}
}

// benchUnit is the unit as the format has it: one word. Nanoseconds are those of a request.
func benchUnit(unit string) string {
	switch unit {
	case ratioUnit:
		return "ratio"
	case "ns":
		return "ns/req"
	case "/s":
		return "req/s"
	}
	if words := strings.Fields(plain(unit)); len(words) > 0 {
		return strings.Join(words, "-")
	}
	return "value"
}

// benchName makes one word of letters, digits and underscores: benchstat takes a hyphen with digits at the end of a name for the
// number of processors, and a slash for the beginning of a sub-benchmark.
func benchName(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return "unnamed"
	}
	return strings.Join(words, "_")
}

// unique numbers names that come again.
func unique(seen map[string]bool, name string) string {
	free := name
	for n := 2; seen[free]; n++ {
		free = name + "_" + strconv.Itoa(n)
	}
	seen[free] = true
	return free
}

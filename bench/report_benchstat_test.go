package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// benchstatTool is the pinned one, which make builds.
const benchstatTool = "../.tools/benchstat"

func TestBenchstat_Lines(t *testing.T) {
	text := written(t, sampleReport().writeBenchstat)
	for want, count := range map[string]int{
		"BenchmarkF1/requests_s_node_to_bare 1 0.9312 ratio\n":                  1,
		"BenchmarkF1/requests_s_node_to_bare 1 ":                                7,
		"BenchmarkF1/requests_s_node_to_bare/side=node 1 ":                      7, // its rounds are known
		"BenchmarkF1/CPU_per_request_node_to_bare/side=node 1 37120 ns/req\n":   1, // only its median is
		"BenchmarkF4/allocations_per_request_on_the_path_of_F1 1 0 allocations": 1,
		"Unit req/s better=higher\n":                                            1,
		"Unit ms better=lower\n":                                                1,
		"Unit ratio ":                                                           0, // of ratios some are better when high
		"cpu: AMD EPYC 7B13\n":                                                  1,
	} {
		if got := strings.Count(text, want); got != count {
			t.Errorf("%q is there %d times, want %d:\n%s", want, got, count, text)
		}
	}
}

func TestBenchstat_EveryLineIsOfTheFormat(t *testing.T) {
	format := regexp.MustCompile(`^(Benchmark\S+ 1 [-+.\deE]+ \S+|Unit \S+ better=(higher|lower)|[a-z]+: .*)$`)
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		if err := anyReport(t).writeBenchstat(&out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if !format.MatchString(strings.TrimSuffix(line, "\n")) {
				t.Fatalf("line %q", line)
			}
		}
	})
}

func TestBenchstat_NamesStayApart(t *testing.T) {
	r := &report{Goals: []goal{{ID: "F3", Measures: []measure{{Name: "p99-45", Value: 1}, {Name: "p99 45", Value: 2}, {Name: "—", Value: 3}}}}}
	text := written(t, r.writeBenchstat)
	for _, want := range []string{"BenchmarkF3/p99_45 1 1 value\n", "BenchmarkF3/p99_45_2 1 2 value\n", "BenchmarkF3/unnamed 1 3 value\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

func TestBenchstat_TheToolComparesTwoReports(t *testing.T) {
	if _, err := os.Stat(benchstatTool); err != nil {
		t.Skipf("benchstat is missing (make .tools/benchstat builds it): %v", err)
	}
	dir := t.TempDir()
	old, slower := sampleReport(), sampleReport()
	m := &slower.Goals[0].Measures[0]
	for i := range m.Rounds {
		m.Rounds[i] *= 0.5
	}
	save := func(name string, r *report) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(written(t, r.writeBenchstat)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first, second := save("old.txt", old), save("new.txt", slower)

	compared := benchstat(t, first, second)
	if !regexp.MustCompile(`F1/requests_s_node_to_bare\b.*-50\.00%`).MatchString(compared) {
		t.Errorf("half of the ratio is no -50 %%:\n%s", compared)
	}
	if !regexp.MustCompile(`F2/requests_s_node_to_bare_plain\b.*~`).MatchString(compared) {
		t.Errorf("what did not change is not shown as such:\n%s", compared)
	}
	sides := benchstat(t, "-col", "/side", "-filter", ".unit:req/s .name:F1", first)
	if !strings.Contains(sides, "bare") || !strings.Contains(sides, "node") {
		t.Errorf("the sides are no columns:\n%s", sides)
	}
}

// benchstat runs the tool; it complains on standard error about lines that it does not take for results.
func benchstat(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), benchstatTool, args...)
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil || problems.Len() > 0 {
		t.Fatalf("benchstat %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	return string(out)
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBench is the program itself: two goals from the command line to the files, in rounds too short to mean anything, then a load on a
// node that somebody else started.
func TestBench(t *testing.T) {
	dir := t.TempDir()
	tasard, bench := filepath.Join(dir, "tasard"), filepath.Join(dir, "bench")
	if err := buildNode(t.Context(), tasard); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", bench, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the bench: %v: %s", err, output)
	}
	t.Run("goals", func(t *testing.T) { checkGoals(t, bench, tasard) })
	t.Run("address", func(t *testing.T) { checkAddress(t, bench, tasard) })
}

func checkGoals(t *testing.T, bench, tasard string) {
	out := t.TempDir()
	args := []string{
		"-tasard", tasard, "-out", out, "-goals", "F1,F12", "-rounds", "1", "-measure", "80ms", "-warmup", "20ms",
		"-accounts", "100", "-connections", "8", "-profile", filepath.Join(out, "profiles"),
	}
	output, err := exec.CommandContext(t.Context(), bench, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if !strings.Contains(string(output), "The reports are in") {
		t.Errorf("told\n%s", output)
	}
	file, err := os.Open(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := readReport(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Goals) != 2 || r.Goals[0].ID != "F1" || len(r.Goals[0].Measures) != 4 || r.Goals[1].ID != "F12" || len(r.Curves) != 2 {
		t.Errorf("%d goals, %d curves: %+v", len(r.Goals), len(r.Curves), r.Goals)
	}
	for name, holds := range map[string]string{"report.html": "<svg", "report.txt": "F12", "bench.txt": "BenchmarkF1/"} {
		if text, err := os.ReadFile(filepath.Join(out, name)); err != nil || !strings.Contains(string(text), holds) {
			t.Errorf("%s: %v, %d bytes, want %q in it", name, err, len(text), holds)
		}
	}
	if profile, err := os.ReadFile(filepath.Join(out, "profiles", "best.pprof")); err != nil || len(profile) == 0 {
		t.Errorf("the profile: %v, %d bytes", err, len(profile))
	}
}

func checkAddress(t *testing.T, bench, tasard string) {
	made, err := newFixture(t.TempDir(), fixtureSize{institutions: 5, currencies: 2, accounts: 3, days: 1})
	if err != nil {
		t.Fatal(err)
	}
	node := newNode(tasard, made)
	found, err := node.start(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := node.stop(); err != nil {
			t.Error(err)
		}
	}()
	keys := filepath.Join(t.TempDir(), "keys.txt")
	if err := os.WriteFile(keys, []byte(strings.Join(made.keys, "\n")+"\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-against", "http://" + found.address, "-keys", keys, "-mix", "best", "-rate", "200", "-measure", "200ms", "-connections", "4"}
	output, err := exec.CommandContext(t.Context(), bench, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if text := string(output); !strings.Contains(text, "40 answers") || !strings.Contains(text, "  200: 40\n") || strings.Contains(text, "lost") {
		t.Errorf("told\n%s", text)
	}
}

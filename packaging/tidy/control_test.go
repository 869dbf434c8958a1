package tidy_test

import (
	"slices"
	"strings"
	"testing"
)

// Each check is fed what it must report, and something close to it that it must let pass: a check that never speaks proves nothing.

func TestTidy_ControlSources(t *testing.T) {
	tests := []struct {
		check, path, text string
		want              string // part of the one problem; "" for none
	}{
		{"function length", "engine/a.go", function(functionLinesMax + 1), "a.go:3: function f has 71 lines"},
		{"function length", "engine/a_test.go", function(functionLinesMax + 1), "has 71 lines"},
		{"function length", "engine/a.go", function(functionLinesMax), ""},

		{"file length", "engine/a.go", lines(fileLinesMax + 1), "401 lines"},
		{"file length", "engine/a.go", lines(fileLinesMax), ""},
		{"file length", "engine/a_test.go", lines(testLinesMax), ""},
		{"file length", "engine/a_test.go", lines(testLinesMax + 1), "601 lines"},

		{"goroutines", "engine/a.go", body("go f()"), "engine/a.go:3: starts a goroutine"},
		{"goroutines", "engine/a.go", body("var wg sync.WaitGroup; wg.Go(f)"), "starts a goroutine"},
		{"goroutines", "engine/a.go", body("time.AfterFunc(1, f)"), "starts a goroutine"},
		{"goroutines", "engine/a.go", body("x := clock.Go()"), ""},
		{"goroutines", "engine/a_test.go", body("go f()"), ""},

		{"binary floats", "engine/a.go", body("var x float64"), "float64"},
		{"binary floats", "httpapi/apitest/a.go", body("x := []float32{}"), "float32"},
		{"binary floats", "collectors/a.go", body("x := 58.95"), "58.95"},
		{"binary floats", "httpapi/a.go", body("x, _ := strconv.ParseFloat(s, 64)"), "ParseFloat"},
		{"binary floats", "engine/a.go", body(`x := "58.95"; y := 1e6`), ""},
		{"binary floats", "engine/a_test.go", body("var x float64"), ""},
		{"binary floats", "bench/a.go", body("var x float64"), ""},

		{"unfinished work", "engine/a.go", body("f() // TO" + "DO: later"), "engine/a.go:3"},
		{"unfinished work", "engine/a_test.go", body("/* X" + "XX */"), "engine/a_test.go:3"},
		{"unfinished work", "engine/a.go", body(`f("X` + `XX") // todos los bancos`), ""},

		{"sleeping tests", "engine/a_test.go", body("time.Sleep(1)"), "a test sleeps"},
		{"sleeping tests", "engine/a_test.go", body("bed.Sleep(1)"), ""},

		{"init functions", "engine/a.go", "package a\n\nfunc init() {}\n", "func init"},
		{"init functions", "engine/a.go", "package a\n\nfunc (s *S) init() {}\n", ""},
	}
	tried := map[string]bool{}
	for _, tt := range tests {
		tried[tt.check] = true
		problems := fileChecks()[tt.check](mustParse(t, tt.path, tt.text))
		expect(t, tt.check+" in "+tt.path, problems, tt.want)
	}
	for name := range fileChecks() {
		if !tried[name] {
			t.Errorf("check %q has no control", name)
		}
	}
}

func TestTidy_ControlTree(t *testing.T) {
	long := "// Package a is\n" + strings.Repeat("// more\n", docLinesMin-1) + "package a\n"
	for _, tt := range []struct{ path, text, want string }{
		{"engine/a.go", long, "engine/doc.go: package comment of 0 lines"},
		{"engine/doc.go", "// Package a is.\npackage a\n", "engine/doc.go: package comment of 1 lines"},
		{"engine/doc.go", long, ""},
	} {
		one, other := mustParse(t, tt.path, tt.text), mustParse(t, "engine/z.go", "package a\n")
		expect(t, tt.path, missingDocs([]source{one, other}), tt.want)
		expect(t, tt.path, missingDocs([]source{other, one}), tt.want)
	}
	starts := []source{mustParse(t, "wal/a.go", body("go f()"))}
	expect(t, "current", staleGoroutineFiles(starts, map[string]string{"wal/a.go": "Log.Close"}), "")
	expect(t, "no owner", staleGoroutineFiles(starts, map[string]string{"wal/a.go": ""}), "without an owner")
	expect(t, "gone", staleGoroutineFiles(starts, map[string]string{"wal/b.go": "Log.Close"}), "wal/b.go: is in goroutineFiles but")
	for _, tt := range []struct{ name, text, want string }{
		{"README.md", "see /wo" + "rk/main/x", "README.md:1"},
		{"README.md", "\n\"/ro" + "ot/go/pkg\"", "README.md:2"},
		{"engine/a_test.go", "/ho" + "me/ana/tasas.csv", "a path of one machine"},
		{".ci/run", "https://go.example.inter" + "nal/x", "a host of one network"},
		{"go.sum", "http://registry.l" + "an/x", "a host of one network"},
		{"README.md", "https://example.com/wo" + "rk/main, ./ro" + "ot/x, chro" + "ot/x", ""},
		{"README.md", "http://localhost:8080/v1 and http://127.0.0.1:8080/v1", ""},
		{"README.md", "- TO" + "DO: write this", "README.md:1"},
		{"Makefile", "# FIX" + "ME", "Makefile:1"},
		{"httpapi/testdata/best.json", `{"currency":"X` + `XX"}`, ""},
		{"go.mod", "module m\nreplace a => ../a\n", "go.mod:2"},
		{"go.mod", "replace (\n\ta => ../a\n)\n", "go.mod:1"},
		{"go.mod", "require a v1.0.0 // we replaced b\n", ""},
	} {
		expect(t, tt.name, textProblems(tt.name, tt.text), tt.want)
	}
	for name, want := range map[string]bool{"tasard": true, "bench/tasard": false, "a/b.test": true, "wal/testdata/rapid": true, "data": true, "httpapi/data": false, "x.out": true, "main.go": false} {
		if got := slices.ContainsFunc([]string{"/tasard", "*.test", "/data/", "testdata/rapid/", "/*.out"}, func(rule string) bool { return ignores(rule, name) }); got != want {
			t.Errorf("%s is ignored: %t", name, got)
		}
	}
}

// mustParse is a file that exists only here.
func mustParse(t *testing.T, path, text string) source {
	t.Helper()
	s, err := parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// expect holds the problems of a check against the one it must report, or none.
func expect(t *testing.T, what string, problems []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(problems) > 0:
		t.Errorf("%s: reported without reason: %q", what, problems)
	case want != "" && (len(problems) != 1 || !strings.Contains(problems[0], want)):
		t.Errorf("%s: got %q, want one problem with %q", what, problems, want)
	}
}

// body wraps statements into a file; they stand in line 3.
func body(statements string) string {
	return "package a\n\nfunc g() { " + statements + "\n}\n"
}

// function is a file with one function of so many lines.
func function(count int) string {
	return "package a\n\nfunc f() {\n" + strings.Repeat("\tg()\n", count-2) + "}\n"
}

// lines is a file of so many lines.
func lines(count int) string {
	return "package a\n" + strings.Repeat("\n", count-1)
}

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSampled: a test is run whole when it reaches what differs under the race detector, however far, and only then.
func TestSampled(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"race_on_test.go":  "//go:build race\n\npackage a\n\nconst slow = true\n",
		"race_off_test.go": "//go:build !race\n\npackage a\n\nconst slow = false\n",
		"faults_test.go":   "//go:build faults\n\npackage a\n\nimport \"testing\"\n\nfunc TestElsewhere(t *testing.T) { _ = slow }\n",
		"a_test.go": `package a

import "testing"

var many = size()

func size() int {
	if slow {
		return 1
	}
	return 100
}

func TestFar(t *testing.T)   { _ = many }
func TestNear(t *testing.T)  { _ = slow }
func TestOther(t *testing.T) {}
func BenchmarkNear(b *testing.B) { _ = slow }
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := sampled(dir)
	if want := []string{"TestFar", "TestNear"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

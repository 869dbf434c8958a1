package main

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestMachine(t *testing.T) {
	for _, tt := range []struct {
		text, cpu string
		cores     int
	}{
		{"processor\t: 0\nmodel name\t: AMD  EPYC 7B13\nflags\t\t: fpu\n\nprocessor\t: 1\nmodel name\t: AMD  EPYC 7B13\n", "AMD EPYC 7B13", 2},
		{"processor\t: 0\nBogoMIPS\t: 243.75\n", unknown, 1},
		{"processor\nmodel name\n", unknown, 0},
		{"processor\t: 0\nflags\t: " + strings.Repeat("avx ", 50_000) + "\nmodel name\t: X\n", "X", 1},
	} {
		if cpu, cores := parseCPU([]byte(tt.text)); cpu != tt.cpu || cores != tt.cores {
			t.Errorf("%.60q: %q with %d cores, want %q with %d", tt.text, cpu, cores, tt.cpu, tt.cores)
		}
	}
	for text, want := range map[string]int64{
		"HugePages_Total: 0\nMemTotal:        8129936 kB\n": 8129936 * 1024,
		"MemTotal: 12 MB\n":                   0,
		"MemTotal: 9223372036854775807 kB\n":  0,
		"MemTotal: many kB\nMemTotal: 1 kB\n": 0,
	} {
		if got := parseMemory([]byte(text)); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
	if m := thisMachine(); m.Cores < 1 || m.Go != runtime.Version() || m.CPU == "" || m.Kernel == "" {
		t.Errorf("%+v lacks something", m)
	}
}

// What is not known of the tree is said.
func TestTreeState(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "4f2a"}
	for _, tt := range []struct {
		settings []debug.BuildSetting
		commit   string
		changed  bool
	}{
		{nil, unknown, false},
		{[]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}, "4f2a", false},
		{[]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, revision}, "4f2a", true},
	} {
		if commit, changed := stampedState(tt.settings); commit != tt.commit || changed != tt.changed {
			t.Errorf("%v: %q, %v", tt.settings, commit, changed)
		}
	}
	if commit, _ := treeState(); commit == "" {
		t.Error("the commit of this build is empty")
	}
}

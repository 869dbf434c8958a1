package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

const cpuOfAMD64 = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD  EPYC 7B13\nflags\t\t: fpu vme\n\n" +
	"processor\t: 1\nmodel name\t: AMD  EPYC 7B13\n"

func TestMachine_CPU(t *testing.T) {
	for name, tt := range map[string]struct {
		text, cpu string
		cores     int
	}{
		"two of one kind": {cpuOfAMD64, "AMD EPYC 7B13", 2},
		"no model name":   {"processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\n", unknown, 1},
		"nothing":         {"", unknown, 0},
		"no colon":        {"processor\nmodel name\n", unknown, 0},
		"a long line":     {"processor\t: 0\nflags\t: " + strings.Repeat("avx ", 50_000) + "\nmodel name\t: X\n", "X", 1},
	} {
		if cpu, cores := parseCPU([]byte(tt.text)); cpu != tt.cpu || cores != tt.cores {
			t.Errorf("%s: %q with %d cores, want %q with %d", name, cpu, cores, tt.cpu, tt.cores)
		}
	}
}

func TestMachine_Memory(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:        8129936 kB\nMemFree:          123 kB\n": 8129936 * 1024,
		"MemFree: 1 kB\n":                      0,
		"MemTotal: 12 MB\n":                    0,
		"MemTotal: -4 kB\n":                    0,
		"MemTotal: 99999999999999999999 kB\n":  0,
		"MemTotal: 9223372036854775807 kB\n":   0,
		"MemTotal: many kB\nMemTotal: 1 kB":    0,
		"":                                     0,
		"HugePages_Total: 0\nMemTotal: 1 kB\n": 1024,
	} {
		if got := parseMemory([]byte(text)); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
}

func TestMachine_This(t *testing.T) {
	m := thisMachine()
	if m.Cores < 1 || m.Go != runtime.Version() || m.CPU == "" || m.Kernel == "" {
		t.Errorf("%+v lacks something", m)
	}
	if runtime.GOOS == "linux" && (m.Memory <= 0 || m.Kernel == unknown) {
		t.Errorf("%+v: Linux tells its memory and its version", m)
	}
}

func TestTreeState_Stamped(t *testing.T) {
	for name, tt := range map[string]struct {
		settings []debug.BuildSetting
		commit   string
		changed  bool
		ok       bool
	}{
		"none":    {[]debug.BuildSetting{{Key: "GOARCH", Value: "amd64"}}, "", false, false},
		"clean":   {[]debug.BuildSetting{{Key: "vcs.revision", Value: "4f2a"}, {Key: "vcs.modified", Value: "false"}}, "4f2a", false, true},
		"changed": {[]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: "4f2a"}}, "4f2a", true, true},
	} {
		commit, changed, ok := stampedState(tt.settings)
		if commit != tt.commit || changed != tt.changed || ok != tt.ok {
			t.Errorf("%s: %q, %v, %v", name, commit, changed, ok)
		}
	}
}

func TestTreeState_Git(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skipf("git is missing: %v", err)
	}
	for _, key := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} { // set while a hook of another checkout runs
		t.Setenv(key, "")
		if err := os.Unsetenv(key); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	dir := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	run := func(args ...string) string {
		out, err := git(t.Context(), dir, args...)
		if err != nil {
			t.Fatalf("git %s: %v", strings.Join(args, " "), err)
		}
		return out
	}
	holds := func(when, wantCommit string, wantChanged bool) {
		t.Helper()
		if commit, changed := gitState(t.Context(), dir); commit != wantCommit || changed != wantChanged {
			t.Errorf("%s: %q, %v; want %q, %v", when, commit, changed, wantCommit, wantChanged)
		}
	}
	holds("no checkout", unknown, false)
	run("init", "-q")
	holds("no commit", unknown, false)
	name := filepath.Join(dir, "a.go")
	if err := os.WriteFile(name, []byte("package a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("add", "a.go")
	run("-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "a")
	head := run("rev-parse", "HEAD")
	holds("clean", head, false)
	if err := os.WriteFile(name, []byte("package b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	holds("changed", head, true)
	run("checkout", "-q", "a.go")
	if err := os.WriteFile(filepath.Join(dir, "b.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	holds("a new file, which the build would take", head, true)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if commit, _ := gitState(ended, dir); commit != unknown {
		t.Errorf("git that does not answer in time: %q, want %q", commit, unknown)
	}
}

func TestTreeState_OfThisTree(t *testing.T) {
	commit, _ := treeState()
	if commit == "" || commit != strings.TrimSpace(commit) {
		t.Errorf("commit %q", commit)
	}
}

func FuzzMachine(f *testing.F) {
	f.Add([]byte(cpuOfAMD64))
	f.Add([]byte("MemTotal:        8129936 kB\n"))
	f.Add([]byte(":\n:processor:"))
	f.Fuzz(func(t *testing.T, text []byte) {
		name, cores := parseCPU(text)
		if name == "" || cores < 0 || strings.Contains(name, "\n") {
			t.Errorf("%q with %d cores", name, cores)
		}
		if n := parseMemory(text); n < 0 {
			t.Errorf("%d bytes", n)
		}
	})
}

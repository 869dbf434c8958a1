//go:build faults

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// figure prints what a test found, in the one form that make test-faults shows and collects.
func figure(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("FIGURE %s", fmt.Sprintf(format, args...))
}

// progress prints how far a long test is.
func progress(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("PROGRESS %s", fmt.Sprintf(format, args...))
}

// needRoot skips a test that mounts, makes devices or limits processes.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NEEDS root: run make test-faults as root, in a machine of its own")
	}
}

// need skips a test whose programs are missing; package says what to install.
func need(t *testing.T, install string, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NEEDS %s: apt-get install %s", program, install)
		}
	}
}

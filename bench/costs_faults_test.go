//go:build faults

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFaultsF4_CostsControl plants a waste in the node's request path, one after the other. Held against the costs of the program without
// it, measured in the same run, each is told.
func TestFaultsF4_CostsControl(t *testing.T) {
	if err := canTrace(t.Context()); err != nil {
		t.Skipf("NEEDS %v", err)
	}
	accepted := plantedCosts(t, "", acceptTraces)
	if problems := accepted.problems(plantedCosts(t, "", 1)); len(problems) > 0 {
		t.Errorf("the same program: %q", problems)
	}
	for _, plant := range []struct{ waste, want string }{
		{"_ = syscall.Getppid()", "system calls getppid"},
		{"_, _ = syscall.GetsockoptInt(1, syscall.SOL_SOCKET, syscall.SO_ERROR)", "system calls that fail"},
		{"_, _ = syscall.Write(1, []byte{})", "system calls write"},
		{"wasted = make([]byte, 64)", "allocations"},
		{`ctx.Response.Header.Set("X-Planted", "0123456789abcdef")`, "bytes"},
		{"for i := range 100_000 { wastedSum ^= i }", "CPU time"},
	} {
		problems := accepted.problems(plantedCosts(t, plant.waste, 1))
		t.Logf("FIGURE %s: %q", plant.waste, problems)
		if !strings.Contains(strings.Join(problems, "\n"), plant.want) {
			t.Errorf("%s is not found, want %q in %q", plant.waste, plant.want, problems)
		}
	}
}

// plantedCosts are the costs of the best rates of a node with a statement more in its outermost handler.
func plantedCosts(t *testing.T, waste string, traces int) costList {
	t.Helper()
	dir, tasard := t.TempDir(), filepath.Join(t.TempDir(), "tasard")
	file, err := filepath.Abs("../httpapi/server.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const head = "func (s *Server) serve(ctx *fasthttp.RequestCtx) {\n"
	if strings.Count(string(text), head) != 1 {
		t.Fatalf("%s is not as it was, want once:\n%s", file, head)
	}
	changed := strings.Replace(string(text), head, head+"_, _ = syscall.EINVAL, wasted\n"+waste+"\n", 1)
	changed = strings.Replace(changed, "import (\n", "import (\n\"syscall\"\n", 1) + "\nvar wasted []byte\n\nvar wastedSum int\n"
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: filepath.Join(dir, "server.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"server.go": []byte(changed), "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", tasard, "github.com/tasard/tasard")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the node with %s: %v: %s", waste, err, output)
	}
	found, err := measureCosts(t.Context(), tasard, t.Output(), []string{mixBest}, traces)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

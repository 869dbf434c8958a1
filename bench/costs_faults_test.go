//go:build faults && linux

package main

import (
	"strings"
	"testing"
)

// TestFaultsF4_CostsControl plants several wastes in the node's request path. Compared with the costs of the
// unchanged program, measured in the same run, each is reported.
func TestFaultsF4_CostsControl(t *testing.T) {
	if err := checkStrace(t.Context()); err != nil {
		t.Skipf("NEEDS %v", err)
	}
	accepted := plantedCosts(t, "", acceptTraces)
	if problems := accepted.exceeded(plantedCosts(t, "", 1)); len(problems) > 0 {
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
		problems := accepted.exceeded(plantedCosts(t, plant.waste, 1))
		t.Logf("FIGURE %s: %q", plant.waste, problems)
		if !strings.Contains(strings.Join(problems, "\n"), plant.want) {
			t.Errorf("%s is not found, want %q in %q", plant.waste, plant.want, problems)
		}
	}
}

// plantedCosts measures the best rates of a node with an additional statement in its outermost handler.
func plantedCosts(t *testing.T, waste string, traces int) costList {
	t.Helper()
	tasard := buildNode(t, "httpapi/server.go",
		"import (\n", "import (\n\"syscall\"\n",
		"func (s *Server) serve(ctx *fasthttp.RequestCtx) {\n",
		"func (s *Server) serve(ctx *fasthttp.RequestCtx) {\n_, _ = syscall.EINVAL, wasted\n"+waste+"\n",
		"func (s *Server) serve(", "var wasted []byte\n\nvar wastedSum int\n\nfunc (s *Server) serve(")
	found, err := measureCosts(t.Context(), tasard, t.Output(), []string{mixBestRates}, traces)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

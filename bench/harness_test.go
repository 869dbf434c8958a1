//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is the bench itself if a test has started this binary as a server; otherwise it runs the tests. fasthttp
// leaves a goroutine for the Date header, and one for each server that ends some seconds later.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == bareName {
		main()
		return
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// buildNode builds the node with a text replaced by another in a file of the module; file "" changes nothing.
func buildNode(t *testing.T, file string, changes ...string) string {
	t.Helper()
	path, args := filepath.Join(t.TempDir(), "tasard"), []string{"build", "-ldflags=-s -w"}
	if file != "" {
		file, overlay := filepath.Join("..", file), path+".json"
		source, err := os.ReadFile(file)
		if err != nil || strings.Count(string(source), changes[0]) != 1 {
			t.Fatalf("change %s: %v, or not once:\n%s", file, err, changes[0])
		}
		if file, err = filepath.Abs(file); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path+".go", []byte(strings.Replace(string(source), changes[0], changes[1], 1)))
		writeFile(t, overlay, fmt.Appendf(nil, `{"Replace":{%q:%q}}`, file, path+".go"))
		args = append(args, "-overlay", overlay)
	}
	if output, err := exec.Command("go", append(args, "-o", path, "..")...).CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, output)
	}
	return path
}

// noError ends a test at an error.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	noError(t, os.WriteFile(path, text, 0o600))
}

func writeProgram(t *testing.T, path, script string) {
	t.Helper()
	noError(t, os.WriteFile(path, []byte(script), 0o700))
}

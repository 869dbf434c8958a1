//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is the bench itself if a test has started this binary as a server; otherwise it runs the tests. fasthttp
// leaves a goroutine for the Date header, and one for each server that ends some seconds later.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "bare" || os.Args[1] == "postgres") {
		main()
		return
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

// buildNode builds the node with texts replaced by others, each at its only place in a file of the module; file ""
// changes nothing. Its flags are those of go test, so that the build cache is shared.
func buildNode(t *testing.T, file string, changes ...string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "tasard")
	args := []string{"build", "-ldflags=-s -w", "-o", path}
	if file != "" {
		whole, err := filepath.Abs(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(whole)
		if err != nil {
			t.Fatal(err)
		}
		for change := range slices.Chunk(changes, 2) {
			if found := bytes.Count(text, []byte(change[0])); found != 1 {
				t.Fatalf("plant a bug in %s: want once, found %d times: %s", file, found, change[0])
			}
			text = bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
		}
		instead, overlay := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json")
		names, err := json.Marshal(map[string]map[string]string{"Replace": {whole: instead}})
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, instead, text)
		writeFile(t, overlay, names)
		args = append(args, "-overlay", overlay)
	}
	if output, err := exec.CommandContext(t.Context(), "go", append(args, "github.com/tasard/tasard")...).CombinedOutput(); err != nil {
		t.Fatalf("build the node: %v: %s", err, output)
	}
	return path
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

package cmd

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// build builds tasard and writes the program to path. texts replaces contents of
// source files for this build. Its keys are paths: relative to the module, or absolute for the standard library. flags
// are further flags of go build.
func build(path string, texts map[string]string, flags ...string) error {
	args := append([]string{"build", "-o", path}, flags...)
	if len(texts) > 0 {
		overlay, err := writeOverlay(texts)
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(filepath.Dir(overlay)) }() // on an error, files stay in the system's temporary directory
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, ".")...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, output)
	}
	return nil
}

// writeOverlay writes the new contents of source files into a temporary directory, with a list for go build -overlay.
func writeOverlay(texts map[string]string) (overlay string, err error) {
	dir, err := os.MkdirTemp("", "tasard-overlay-")
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range texts {
		if !filepath.IsAbs(file) {
			if file, err = filepath.Abs(file); err != nil {
				return "", err
			}
		}
		replace[file] = filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(replace[file], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

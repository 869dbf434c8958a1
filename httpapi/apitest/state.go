package apitest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tasard/tasard/wal"
)

// State is the data that a node had on disk at one time. It is immutable. Any number of nodes can start from it
// (FromState).
type State struct {
	files  map[string][]byte
	clock  time.Time
	random []byte // position of the random source
}

var errNilState = errors.New("the State is nil; use the result of Snapshot")

const copyAttemptsMax = 5 // maximum number of attempts of copyLog

// copyLog reads the files of a log. A node may write to the log at the same time. If the node removes an old file
// meanwhile, copyLog starts again.
func copyLog(dir string) (map[string][]byte, error) {
	for range copyAttemptsMax {
		files, err := readFiles(dir)
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		remaining, err := wal.Files(dir)
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		unchanged := map[string][]byte{}
		for _, path := range remaining {
			if data, ok := files[filepath.Base(path)]; ok {
				unchanged[filepath.Base(path)] = data
			}
		}
		if len(unchanged) == len(files) {
			return files, nil
		}
	}
	return nil, fmt.Errorf("read the log: the node removed files during each of %d attempts", copyAttemptsMax)
}

// readFiles reads the files in the order of wal.Files. The first file is the high-water mark, a small file that names
// the end of the log. It is copied first. Therefore its copy is never newer than the copies of the other files.
func readFiles(dir string) (map[string][]byte, error) {
	paths, err := wal.Files(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a snapshot was renamed or an old segment removed
		}
		if err != nil {
			return nil, err
		}
		files[filepath.Base(path)] = data
	}
	return files, nil
}

// newLogDir creates a temporary data directory and writes the files of a log to it.
func newLogDir(files map[string][]byte) (string, error) {
	dir, err := os.MkdirTemp("", "tasard-apitest-")
	if err != nil {
		return "", fmt.Errorf("make a directory for the log: %w", err)
	}
	if err := writeFiles(dir, files); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

func writeFiles(dir string, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o600); err != nil {
			return fmt.Errorf("write the log: %w", err)
		}
	}
	return nil
}

// Write creates a data directory for tasard serve --data. dir must be missing or empty. Only the user of the process
// can read the files. Write does not sync them to disk.
func (s *State) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("write the state: %s is not empty, it has %s; name an empty directory", dir, entries[0].Name())
	}
	if err := writeFiles(dir, s.files); err != nil {
		return fmt.Errorf("write the state to %s: %w", dir, err)
	}
	return nil
}

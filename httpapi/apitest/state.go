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

// State is what a node had on disk at a time. It is immutable and can start any number of nodes.
type State struct {
	files  map[string][]byte
	at     time.Time
	random []byte // position of the random source
}

// readTries is how often copyLog tries while the node removes old segments.
const readTries = 5

// copyLog reads the files of a log, also while a node writes it.
func copyLog(dir string) (map[string][]byte, error) {
	for range readTries {
		files, err := readFiles(dir)
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		after, err := wal.Files(dir)
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		still := map[string][]byte{}
		for _, path := range after {
			if data, read := files[filepath.Base(path)]; read {
				still[filepath.Base(path)] = data
			}
		}
		if len(still) == len(files) {
			return files, nil
		}
	}
	return nil, fmt.Errorf("read the log: its files changed %d times in the middle", readTries)
}

// readFiles reads the files in the order of wal.Files. The high-water mark comes first, so it is never newer than the
// log.
func readFiles(dir string) (map[string][]byte, error) {
	paths, err := wal.Files(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a snapshot that was renamed, or an old segment
		}
		if err != nil {
			return nil, err
		}
		files[filepath.Base(path)] = data
	}
	return files, nil
}

// newLogDir makes a temporary data directory with the files.
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

// Write makes a data directory for tasard serve --data. The directory must be missing or empty. Files are readable
// only by their owner and not synced.
func (s *State) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("write the state: %s holds %s already; name an empty directory", dir, entries[0].Name())
	}
	if err := writeFiles(dir, s.files); err != nil {
		return fmt.Errorf("write the state to %s: %w", dir, err)
	}
	return nil
}

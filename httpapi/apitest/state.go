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

// State is what a node had on disk at a moment, and its time. It is immutable, and may be given to any number of nodes.
type State struct {
	files    map[string][]byte
	at       time.Time
	accounts map[string]*testAccount // that the harness made
	random   []byte                  // where the source of chance stood
}

// readTries is how often a log is read that removes old segments meanwhile.
const readTries = 5

// copyLog reads what is on disk, also beside a node that writes.
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

// readFiles reads the mark first: it may be older than the log beside it, never newer.
func readFiles(dir string) (map[string][]byte, error) {
	paths, err := wal.Files(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since: a snapshot that got its name, or an old segment
		}
		if err != nil {
			return nil, err
		}
		files[filepath.Base(path)] = data
	}
	return files, nil
}

// newLogDir makes a directory of its own for a log, with the files.
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

// Write makes a data directory of the state, on which a real node can be started: tasard serve --data. It makes the directory
// when there is none, and refuses one that holds anything. The files are for their owner alone. They are not synced: a crash
// of the machine, unlike one of the node, may take them.
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

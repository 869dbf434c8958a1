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
)

// State is what a node had on disk at a moment, and its time. It is immutable, and may be given to any number of nodes.
type State struct {
	files    map[string][]byte
	at       time.Time
	accounts map[string]*holder // that the harness made
	chance   []byte             // where the source of chance stood
}

// markFile is read first: it may be older than the log beside it, never newer (package wal).
const markFile = "mark"

// readTries is how often a log is read that removes old segments meanwhile.
const readTries = 5

// imageOf reads what is on disk, also beside a node that writes.
func imageOf(dir string) (map[string][]byte, error) {
	for range readTries {
		files, err := readFiles(dir)
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		names, err := namesIn(dir)
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		if gone := slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(name string) bool { return !slices.Contains(names, name) }); !gone {
			return files, nil
		}
	}
	return nil, fmt.Errorf("read the log: its files changed %d times in the middle", readTries)
}

func readFiles(dir string) (map[string][]byte, error) {
	names, err := namesIn(dir)
	if err != nil {
		return nil, err
	}
	if at := slices.Index(names, markFile); at > 0 {
		names[0], names[at] = names[at], names[0]
	}
	files := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since: a snapshot that got its name, or an old segment
		}
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	return files, nil
}

func namesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// directory makes a directory of its own for a log, with the files.
func directory(files map[string][]byte) (string, error) {
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

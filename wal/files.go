package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Files names what the log in dir consists of: the mark first, then segments and snapshots, unfinished ones too. What was put aside, the
// lock and whatever else is there are not among them. A directory that is not there has none.
func Files(dir string) ([]string, error) {
	found, err := list(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	switch _, err := os.Lstat(filepath.Join(dir, markName)); {
	case err == nil:
		names = append(names, filepath.Join(dir, markName))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("look for the mark: %w", err)
	}
	for _, files := range [][]numbered{found.segments, found.snapshots} {
		for _, f := range files {
			names = append(names, f.path)
		}
	}
	return append(append(names, found.temps...), found.foreign...), nil
}

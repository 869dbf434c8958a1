package apitest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// State is the stored data of a node at one time. It is immutable. Any number of nodes can Restore it.
type State struct {
	data   journalData
	clock  time.Time
	random rand.ChaCha8 // position of the random source
}

var errNilState = errors.New("the State is nil; use the result of Snapshot")

// Write creates a data directory for tasard serve --data. dir must be missing or empty. Only the current user can read
// the files.
func (s *State) Write(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write the state: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("write the state: %s is not empty, it has %s; name an empty directory", dir, entries[0].Name())
	}
	log, err := s.data.writeLog(dir)
	if err == nil {
		err = log.Close()
	}
	if err != nil {
		return fmt.Errorf("write the state to %s: %w", dir, err)
	}
	return nil
}

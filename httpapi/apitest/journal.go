package apitest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/tasard/tasard/actors"
	"github.com/tasard/tasard/wal"
)

// journalData is the contents of a journal at one time: a snapshot and the records after it. It is immutable.
type journalData struct {
	records  [][]byte // after the snapshot
	sequence uint64   // number of the last record that the snapshot covers; 0 = no snapshot
	snapshot []byte
}

func (d *journalData) last() uint64 { return d.sequence + uint64(len(d.records)) }

// memoryJournal is an actors.Journal in memory. When Append returns, the records survive a Crash.
type memoryJournal struct {
	mu   sync.Mutex
	data journalData
}

// stored returns the journal's contents.
func (j *memoryJournal) stored() journalData {
	j.mu.Lock()
	defer j.mu.Unlock()
	data := j.data
	data.records = data.records[:len(data.records):len(data.records)]
	return data
}

// Last implements actors.Journal.
func (j *memoryJournal) Last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.data.last()
}

// Append implements actors.Journal.
func (j *memoryJournal) Append(expected uint64, records [][]byte) (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if last := j.data.last(); last != expected {
		return 0, fmt.Errorf("append after record %d: %w: the last record is %d", expected, actors.ErrPosition, last)
	}
	for _, record := range records {
		j.data.records = append(j.data.records, bytes.Clone(record))
	}
	return j.data.last(), nil
}

// Read implements actors.Journal.
func (j *memoryJournal) Read(from uint64, visit func(sequence uint64, record []byte) error) error {
	data := j.stored()
	if from <= data.sequence {
		return fmt.Errorf("read from record %d: the journal begins with %d", from, data.sequence+1)
	}
	for sequence := from; sequence <= data.last(); sequence++ {
		if err := visit(sequence, data.records[sequence-data.sequence-1]); err != nil {
			return err
		}
	}
	return nil
}

// Snapshot implements actors.Journal.
func (j *memoryJournal) Snapshot() (sequence uint64, r io.ReadCloser, ok bool, err error) {
	data := j.stored()
	return data.sequence, io.NopCloser(bytes.NewReader(data.snapshot)), data.sequence > 0, nil
}

// WriteSnapshot implements actors.Journal. It drops the records that the snapshot covers.
func (j *memoryJournal) WriteSnapshot(sequence uint64, write func(io.Writer) error) error {
	var snapshot bytes.Buffer
	if err := write(&snapshot); err != nil {
		return fmt.Errorf("write snapshot at %d: %w", sequence, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if sequence <= j.data.sequence || sequence > j.data.last() {
		return fmt.Errorf("write snapshot at %d: the records are %d to %d", sequence, j.data.sequence+1, j.data.last())
	}
	rest := j.data.records[sequence-j.data.sequence:]
	j.data = journalData{append([][]byte(nil), rest...), sequence, bytes.Clone(snapshot.Bytes())}
	return nil
}

// DropBefore implements actors.Journal. It does nothing, because WriteSnapshot has dropped the records.
func (j *memoryJournal) DropBefore(uint64) error { return nil }

// Close implements actors.Journal. The journal can still be read.
func (j *memoryJournal) Close() error { return nil }

// writeLog writes the data to a new log in a missing or empty directory, and returns the open log.
func (d *journalData) writeLog(dir string) (*wal.Log, error) {
	options := wal.Options{ReserveBytes: -1, Clock: Epoch} // -1: free disk space is not checked
	if d.sequence > 0 {
		if err := wal.Create(dir, options, d.sequence, func(w io.Writer) error { _, err := w.Write(d.snapshot); return err }); err != nil {
			return nil, err
		}
	}
	log, err := wal.Open(dir, options)
	if err != nil {
		return nil, err
	}
	for records := d.records; len(records) > 0; {
		n, size := 0, 0
		for n < min(len(records), wal.BatchRecordsMax) && size+len(records[n])+batchOverhead <= wal.BatchBytesMax {
			size += len(records[n]) + batchOverhead
			n++
		}
		if _, err := log.Append(records[:n]); err != nil {
			return nil, errors.Join(err, log.Close())
		}
		records = records[n:]
	}
	return log, nil
}

const batchOverhead = 4 // bytes before each record of a batch in the log

// State is the stored data of a node at one time. It is immutable. Any number of nodes can Restore it.
type State struct {
	data   journalData
	clock  time.Time
	random rand.ChaCha8 // position of the random source
}

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

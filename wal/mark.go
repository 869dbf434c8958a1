package wal

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	markName      = "mark"
	markMagic     = "tsMK"
	markSlotBytes = 512 // size of a slot: one sector, so that a power cut damages at most the slot being written
	markSlots     = 2
	markFileBytes = markSlotBytes * markSlots
)

// mark is the high-water mark: all frames (batches of records) from first up to, but not including, end are on disk.
// Open compares the log with the mark. The log must contain all these frames, and the position after them must be end.
// Otherwise acknowledged records are lost.
type mark struct {
	generation uint64   // number of writes of the mark
	first      uint64   // index of the oldest required frame
	end        position // position after the newest synced frame
}

// MarkState tells how many slots of the high-water mark are valid.
type MarkState string

// States of the high-water mark.
const (
	MarkWhole MarkState = "whole" // both slots are valid
	MarkHalf  MarkState = "half"  // only one slot is valid
	MarkLost  MarkState = "lost"  // no slot is valid, or the file is missing
	// MarkInUse means that another process has the log open and writes the mark.
	MarkInUse MarkState = "in use"
)

func (m mark) encode() []byte {
	b := make([]byte, markSlotBytes)
	copy(b, markMagic)
	b[4] = FormatVersion
	binary.LittleEndian.PutUint64(b[8:], m.generation)
	binary.LittleEndian.PutUint64(b[16:], m.first)
	binary.LittleEndian.PutUint64(b[24:], m.end.frame)
	binary.LittleEndian.PutUint64(b[32:], m.end.sequence)
	binary.LittleEndian.PutUint32(b[40:], m.end.chain)
	binary.LittleEndian.PutUint32(b[markSlotBytes-4:], checksum(b[:markSlotBytes-4]))
	return b
}

// decodeMark decodes one slot. ok reports whether it is valid. version is 0, except for an intact slot of a newer
// format.
func decodeMark(b []byte) (m mark, version uint8, ok bool) {
	if len(b) < markSlotBytes || string(b[:4]) != markMagic {
		return mark{}, 0, false
	}
	if checksum(b[:markSlotBytes-4]) != binary.LittleEndian.Uint32(b[markSlotBytes-4:]) {
		return mark{}, 0, false
	}
	if b[4] > FormatVersion {
		return mark{}, b[4], false
	}
	m = mark{
		generation: binary.LittleEndian.Uint64(b[8:]),
		first:      binary.LittleEndian.Uint64(b[16:]),
		end: position{
			frame:    binary.LittleEndian.Uint64(b[24:]),
			sequence: binary.LittleEndian.Uint64(b[32:]),
			chain:    binary.LittleEndian.Uint32(b[40:]),
		},
	}
	return m, 0, b[4] != 0 && m.first > 0 && m.end.frame >= m.first && m.end.sequence > 0
}

// readMark returns the valid slot of the mark file with the highest generation, or the zero mark and MarkLost.
func readMark(dir string) (newest mark, state MarkState, err error) {
	path := filepath.Join(dir, markName)
	data, err := readFrom(path, 0, markFileBytes+1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return mark{}, "", err
	}
	valid := 0
	for i := range markSlots {
		m, version, ok := decodeMark(data[min(i*markSlotBytes, len(data)):])
		if version != 0 {
			return mark{}, "", &FormatError{File: path, Version: version, Supported: FormatVersion}
		}
		if ok {
			valid++
		}
		if ok && (valid == 1 || m.generation > newest.generation) {
			newest = m
		}
	}
	switch {
	case valid == 0:
		return mark{}, MarkLost, nil
	case valid < markSlots || len(data) != markFileBytes:
		return newest, MarkHalf, nil
	}
	return newest, MarkWhole, nil
}

// markWriter writes the mark of an open log.
type markWriter struct {
	file *os.File
	disk *disk
	mark mark
}

// openMarkWriter opens or creates the mark file and writes m to both slots, durably.
func openMarkWriter(dir string, d *disk, m mark) (*markWriter, error) {
	f, err := os.OpenFile(filepath.Join(dir, markName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	w := &markWriter{file: f, disk: d, mark: m}
	err = w.writeSync()
	if info, statErr := f.Stat(); err == nil && (statErr != nil || info.Size() != markFileBytes) {
		err = errors.Join(statErr, d.truncate(f, markFileBytes), d.sync(f))
	}
	if err == nil {
		err = d.syncDir(dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

// writeMark writes m to both slots, durably.
func writeMark(dir string, d *disk, m mark) error {
	w, err := openMarkWriter(dir, d, m)
	if err != nil {
		return err
	}
	return w.file.Close()
}

// write writes the mark into the older slot, without a sync. A crash of the process does not lose this mark. After a
// power cut the mark can be behind the log, but never ahead of it.
func (w *markWriter) write() error {
	w.mark.generation++
	return w.disk.write(w.file, w.mark.encode(), int64(w.mark.generation%markSlots)*markSlotBytes)
}

// writeSync writes and syncs one slot and then the other. So at least one slot is valid after a power cut.
func (w *markWriter) writeSync() error {
	for range markSlots {
		if err := w.write(); err != nil {
			return err
		}
		if err := w.disk.sync(w.file); err != nil {
			return err
		}
	}
	return nil
}

package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// segment is one file of the log as the scan found it.
type segment struct {
	path  string
	start position // of its first frame, also when it is still empty
	bytes int64    // whole frames only
}

// tear is the torn tail of the last segment.
type tear struct {
	path   string
	offset int64 // the tail begins here
	bytes  int64
	at     position // of the frame that it was to become
}

// place is where a frame lies.
type place struct {
	segment string
	offset  int64
}

// extent is the outcome of a scan.
type extent struct {
	segments []segment
	next     position // behind the last whole frame
	frames   uint64
	records  uint64
	bytes    int64
	tear     *tear
}

// first is the sequence of the oldest record, or of the first one to come when there is none.
func (x extent) first() uint64 {
	if len(x.segments) == 0 {
		return x.next.sequence
	}
	return x.segments[0].start.sequence
}

// last is the sequence of the newest record, 0 when there never was one.
func (x extent) last() uint64 { return x.next.sequence - 1 }

// scanner reads segments in order and checks that they are one unbroken chain of frames.
type scanner struct {
	mark    mark // zero when it was lost
	buffer  []byte
	visit   func(place, frame) error // may be nil
	extent  extent
	started bool // extent.next is known
}

// scan reads the files and returns how far they are one whole log. An error is a *DamageError, a
// *FormatError, one of the visitor or one of reading; the extent then ends before the place of the error.
// Only the scan reads segments: the library panics or invents records on what it refuses.
func scan(files []numbered, m mark, visit func(place, frame) error) (extent, error) {
	s := &scanner{mark: m, visit: visit}
	s.extent.next = origin
	for i, file := range files {
		if err := s.segment(file, i == len(files)-1); err != nil {
			return s.extent, err
		}
	}
	return s.extent, nil
}

func (s *scanner) segment(file numbered, last bool) error {
	if err := s.begin(file); err != nil {
		return err
	}
	data, err := s.read(file.path)
	if err != nil {
		return err
	}
	return s.frames(file, data, last)
}

// frames scans the bytes of one segment.
func (s *scanner) frames(file numbered, data []byte, last bool) error {
	s.extent.segments = append(s.extent.segments, segment{path: file.path, start: s.extent.next})
	here := &s.extent.segments[len(s.extent.segments)-1]
	if len(data) == 0 && (!last || !s.started) {
		return s.damage(file.path, 0, wrong(0, "a frame", "an empty file"))
	}
	for off := 0; off < len(data); {
		f, n, bad := decodeEntry(data[off:])
		if bad == nil && s.started {
			bad = f.follows(s.extent.next)
		}
		if bad == nil && !s.started {
			bad = s.start(file, f, here)
		}
		if bad != nil {
			return s.stop(file.path, data, off, bad, f, last)
		}
		if err := s.accept(place{file.path, int64(off)}, f, here, n); err != nil {
			return err
		}
		off += n
	}
	return nil
}

// begin checks the name of the segment against where the one before it ended.
func (s *scanner) begin(file numbered) error {
	if len(s.extent.segments) == 0 {
		s.anchor(file)
		return nil
	}
	if file.number != s.extent.next.frame {
		before := s.extent.segments[len(s.extent.segments)-1]
		return s.damage(before.path, before.bytes, wrong(0,
			fmt.Sprintf("the next segment to begin with frame %d", s.extent.next.frame),
			fmt.Sprintf("%s, which begins with %d", file.path, file.number)))
	}
	return nil
}

// anchor finds out what the first segment must begin with. When older segments were dropped only its own
// first frame says so, unless the mark does.
func (s *scanner) anchor(file numbered) {
	switch {
	case s.started: // the caller knew
	case file.number == origin.frame:
		s.started = true
	case file.number == s.mark.end.frame:
		s.extent.next, s.started = s.mark.end, true
	}
}

// start takes the position of the first frame of a log whose beginning was dropped.
func (s *scanner) start(file numbered, f frame, here *segment) *fault {
	if f.index != file.number {
		return wrong(16, fmt.Sprintf("frame %d", file.number), fmt.Sprintf("frame %d", f.index))
	}
	s.extent.next = position{frame: f.index, sequence: f.first, chain: f.chain}
	s.started = true
	here.start = s.extent.next
	return nil
}

// accept counts a whole frame in its place.
func (s *scanner) accept(at place, f frame, here *segment, n int) error {
	if err := s.agree(at.segment, at.offset); err != nil {
		return err
	}
	if s.visit != nil {
		if err := s.visit(at, f); err != nil {
			return err
		}
	}
	s.extent.next = f.next()
	s.extent.frames++
	s.extent.records += uint64(f.count)
	s.extent.bytes += int64(n)
	here.bytes += int64(n)
	return nil
}

// agree compares the position with the mark where both speak of the same frame. A difference means that
// the chain is whole but is not the one that was acknowledged: an older or foreign copy.
func (s *scanner) agree(path string, offset int64) error {
	if s.extent.next.frame != s.mark.end.frame || s.extent.next == s.mark.end {
		return nil
	}
	return s.damage(path, offset, wrong(0,
		fmt.Sprintf("sequence %d after checksum %08x, as the mark says", s.mark.end.sequence, s.mark.end.chain),
		fmt.Sprintf("sequence %d after %08x", s.extent.next.sequence, s.extent.next.chain)))
}

// stop decides between a torn tail and damage.
func (s *scanner) stop(path string, data []byte, off int, bad *fault, f frame, last bool) error {
	if bad.version != 0 {
		return &FormatError{File: path, Version: bad.version, Known: FormatVersion}
	}
	if bad.torn && f.index != 0 && s.started {
		// The header is whole although the rest is not, so it must be the right one.
		if other := f.follows(s.extent.next); other != nil {
			bad = other
		}
	}
	if !bad.torn || !last || !s.started {
		return s.damage(path, int64(off), bad)
	}
	rest := data[off:]
	if later, at := findFrame(rest, s.extent.next.frame); at >= 0 {
		bad.found += fmt.Sprintf(", but frame %d whole at offset %d", later.index, off+at)
		return s.damage(path, int64(off), bad)
	}
	if len(rest) > entryBytesMax {
		bad.found += fmt.Sprintf(", and %d bytes, more than one batch can leave", len(rest))
		return s.damage(path, int64(off), bad)
	}
	if s.mark.end.frame > s.extent.next.frame {
		return s.acknowledged(path, int64(off), bad)
	}
	s.extent.tear = &tear{path: path, offset: int64(off), bytes: int64(len(rest)), at: s.extent.next}
	return nil
}

func (s *scanner) damage(path string, offset int64, bad *fault) error {
	return &DamageError{
		File: path, Offset: offset + int64(bad.at), Sequence: s.extent.next.sequence,
		Expected: bad.expected, Found: bad.found, Hint: hintRestore,
	}
}

func (s *scanner) acknowledged(path string, offset int64, bad *fault) error {
	err := s.damage(path, offset, bad)
	var d *DamageError
	if errors.As(err, &d) {
		d.Hint = hintAcked
	}
	return err
}

// read returns the file's bytes in a buffer that the next read overwrites.
func (s *scanner) read(path string) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("scan log: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("scan log: %w", err)
	}
	if info.Size() > segmentFileBytesMax {
		return nil, s.damage(path, segmentFileBytesMax, wrong(0,
			fmt.Sprintf("a segment of at most %d bytes", segmentFileBytesMax), fmt.Sprintf("%d", info.Size())))
	}
	data = s.room(int(info.Size()))
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("scan %s: %w", path, err)
	}
	return data, nil
}

// room is a buffer of so many bytes that the next call overwrites.
func (s *scanner) room(size int) []byte {
	s.buffer = slices.Grow(s.buffer[:0], size)
	return s.buffer[:size]
}

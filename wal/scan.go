package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// scanSegment is one file of the log as the scan found it.
type segment struct {
	path  string
	start position // of its first frame, also when it is still empty
	bytes int64    // whole frames only
}

// tornTail is the torn tail of the last segment.
type tornTail struct {
	path   string
	offset int64 // the tail begins here
	bytes  int64
	at     position // of the frame that it was to become
}

// placement is where a frame lies.
type location struct {
	segment string
	offset  int64
}

// result is the outcome of a scan.
type scanResult struct {
	segments []segment
	next     position // behind the last whole frame
	frames   uint64
	records  uint64
	bytes    int64
	tornTail *tornTail
}

// first is the sequence of the oldest record, or of the first one to come when there is none.
func (x scanResult) first() uint64 {
	if len(x.segments) == 0 {
		return x.next.sequence
	}
	return x.segments[0].start.sequence
}

// last is the sequence of the newest record, 0 when there never was one.
func (x scanResult) last() uint64 { return x.next.sequence - 1 }

// scanner reads segments in order and checks that they are one unbroken chain of frames.
type scanner struct {
	mark          mark // zero when it was lost
	buffer        []byte
	visit         func(location, frame) error // may be nil
	result        scanResult
	positionKnown bool // extent.next is known
}

// scanner reads the files and returns how far they are one whole log. An error is a *DamageError, a
// *FormatError, one of the visitor or one of reading; the extent then ends before the place of the error.
// Only the scan reads segments: the library panics or invents records on what it refuses.
func scan(files []numberedFile, m mark, visit func(location, frame) error) (scanResult, error) {
	s := &scanner{mark: m, visit: visit}
	s.result.next = origin
	for i, file := range files {
		if err := s.scanSegment(file, i == len(files)-1); err != nil {
			return s.result, err
		}
	}
	return s.result, nil
}

func (s *scanner) scanSegment(file numberedFile, last bool) error {
	if err := s.checkSegmentName(file); err != nil {
		return err
	}
	data, err := s.readSegment(file.path)
	if err != nil {
		return err
	}
	return s.scanFrames(file, data, last)
}

// scanFrames scans the bytes of one segment.
func (s *scanner) scanFrames(file numberedFile, data []byte, last bool) error {
	s.result.segments = append(s.result.segments, segment{path: file.path, start: s.result.next})
	here := &s.result.segments[len(s.result.segments)-1]
	if len(data) == 0 && (!last || !s.positionKnown) {
		return s.damageError(file.path, 0, newFault(0, "a frame", "an empty file"))
	}
	for off := 0; off < len(data); {
		f, n, bad := decodeEntry(data[off:])
		if bad == nil && s.positionKnown {
			bad = f.checkPosition(s.result.next)
		}
		if bad == nil && !s.positionKnown {
			bad = s.takeFirstFrame(file, f, here)
		}
		if bad != nil {
			return s.classify(file.path, data, off, bad, f, last)
		}
		if err := s.accept(location{file.path, int64(off)}, f, here, n); err != nil {
			return err
		}
		off += n
	}
	return nil
}

// checkSegmentName checks the name of the segment against where the one before it ended.
func (s *scanner) checkSegmentName(file numberedFile) error {
	if len(s.result.segments) == 0 {
		s.findStart(file)
		return nil
	}
	if file.number != s.result.next.frame {
		before := s.result.segments[len(s.result.segments)-1]
		return s.damageError(before.path, before.bytes, newFault(0,
			fmt.Sprintf("the next segment to begin with frame %d", s.result.next.frame),
			fmt.Sprintf("%s, which begins with %d", file.path, file.number)))
	}
	return nil
}

// findStart finds out what the first segment must begin with. When older segments were dropped only its own
// first frame says so, unless the mark does.
func (s *scanner) findStart(file numberedFile) {
	switch {
	case s.positionKnown: // the caller knew
	case file.number == origin.frame:
		s.positionKnown = true
	case file.number == s.mark.end.frame:
		s.result.next, s.positionKnown = s.mark.end, true
	}
}

// takeFirstFrame takes the position of the first frame of a log whose beginning was dropped.
func (s *scanner) takeFirstFrame(file numberedFile, f frame, here *segment) *fault {
	if f.index != file.number {
		return newFault(16, fmt.Sprintf("frame %d", file.number), fmt.Sprintf("frame %d", f.index))
	}
	s.result.next = position{frame: f.index, sequence: f.first, chain: f.chain}
	s.positionKnown = true
	here.start = s.result.next
	return nil
}

// accept counts a whole frame in its place.
func (s *scanner) accept(at location, f frame, here *segment, n int) error {
	if err := s.compareWithMark(at.segment, at.offset); err != nil {
		return err
	}
	if s.visit != nil {
		if err := s.visit(at, f); err != nil {
			return err
		}
	}
	s.result.next = f.next()
	s.result.frames++
	s.result.records += uint64(f.count)
	s.result.bytes += int64(n)
	here.bytes += int64(n)
	return nil
}

// compareWithMark compares the position with the mark where both speak of the same frame. A difference means that
// the chain is whole but is not the one that was acknowledged: an older or foreign copy.
func (s *scanner) compareWithMark(path string, offset int64) error {
	if s.result.next.frame != s.mark.end.frame || s.result.next == s.mark.end {
		return nil
	}
	return s.damageError(path, offset, newFault(0,
		fmt.Sprintf("sequence %d after checksum %08x, as the mark says", s.mark.end.sequence, s.mark.end.chain),
		fmt.Sprintf("sequence %d after %08x", s.result.next.sequence, s.result.next.chain)))
}

// classify decides between a torn tail and damage.
func (s *scanner) classify(path string, data []byte, off int, bad *fault, f frame, last bool) error {
	if bad.version != 0 {
		return &FormatError{File: path, Version: bad.version, Supported: FormatVersion}
	}
	if bad.torn && f.index != 0 && s.positionKnown {
		// The header is whole although the rest is not, so it must be the right one.
		if other := f.checkPosition(s.result.next); other != nil {
			bad = other
		}
	}
	if !bad.torn || !last || !s.positionKnown {
		return s.damageError(path, int64(off), bad)
	}
	rest := data[off:]
	if later, at := findFrame(rest, s.result.next.frame); at >= 0 {
		bad.found += fmt.Sprintf(", but frame %d whole at offset %d", later.index, off+at)
		return s.damageError(path, int64(off), bad)
	}
	if len(rest) > entryBytesMax {
		bad.found += fmt.Sprintf(", and %d bytes, more than one batch can leave", len(rest))
		return s.damageError(path, int64(off), bad)
	}
	if s.mark.end.frame > s.result.next.frame {
		return s.acknowledgedDamage(path, int64(off), bad)
	}
	s.result.tornTail = &tornTail{path: path, offset: int64(off), bytes: int64(len(rest)), at: s.result.next}
	return nil
}

func (s *scanner) damageError(path string, offset int64, bad *fault) error {
	return &DamageError{
		File: path, Offset: offset + int64(bad.at), Sequence: s.result.next.sequence,
		Expected: bad.expected, Found: bad.found, Hint: hintRestore,
	}
}

func (s *scanner) acknowledgedDamage(path string, offset int64, bad *fault) error {
	err := s.damageError(path, offset, bad)
	var d *DamageError
	if errors.As(err, &d) {
		d.Hint = hintAcknowledged
	}
	return err
}

// readSegment returns the file's bytes in a buffer that the next read overwrites.
func (s *scanner) readSegment(path string) (data []byte, err error) {
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
		return nil, s.damageError(path, segmentFileBytesMax, newFault(0,
			fmt.Sprintf("a segment of at most %d bytes", segmentFileBytesMax), fmt.Sprintf("%d", info.Size())))
	}
	data = s.buffered(int(info.Size()))
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("scan %s: %w", path, err)
	}
	return data, nil
}

// buffered is a buffer of so many bytes that the next call overwrites.
func (s *scanner) buffered(size int) []byte {
	s.buffer = slices.Grow(s.buffer[:0], size)
	return s.buffer[:size]
}

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
	start position // of its first frame, also when it is empty
	bytes int64    // of whole frames
}

// location is where a frame was found.
type location struct {
	segment string
	offset  int64
}

// scanResult is what a scan found.
type scanResult struct {
	segments []segment
	next     position // after the last whole frame
	frames   uint64
	records  uint64
	bytes    int64
	torn     int64 // bytes after the end, of an interrupted write
}

// first is the sequence of the oldest record, or of the next one in an empty log.
func (r *scanResult) first() uint64 {
	if len(r.segments) == 0 {
		return r.next.sequence
	}
	return r.segments[0].start.sequence
}

// last is the sequence of the newest record, 0 if there never was one.
func (r *scanResult) last() uint64 { return r.next.sequence - 1 }

// end is the file and offset at which the scanned frames end.
func (r *scanResult) end() (string, int64) {
	if len(r.segments) == 0 {
		return "the first segment", 0
	}
	last := r.segments[len(r.segments)-1]
	return last.path, last.bytes
}

// scanner reads segments in order and checks that they are one unbroken chain of frames.
type scanner struct {
	mark          mark // zero if it was lost
	buffer        []byte
	visit         func(location, frame) error // may be nil
	result        scanResult
	positionKnown bool // of result.next
}

// scan reads segments and returns how far they form one whole log. Errors: *DamageError, *FormatError, those of visit
// and of reading; the result then ends before the error. Segments are scanned before the library opens them, because
// it panics or invents records on damaged ones.
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
		switch {
		case bad != nil:
		case s.positionKnown:
			bad = f.checkPosition(s.result.next)
		default:
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

// checkSegmentName compares the name of a segment with the end of the one before it.
func (s *scanner) checkSegmentName(file numberedFile) error {
	if len(s.result.segments) == 0 {
		s.findStart(file)
		return nil
	}
	if file.number != s.result.next.frame {
		path, bytes := s.result.end()
		return s.damageError(path, bytes, newFault(0,
			fmt.Sprintf("the next segment to begin with frame %d", s.result.next.frame),
			fmt.Sprintf("%s, which begins with %d", file.path, file.number)))
	}
	return nil
}

// findStart sets the position of the first segment if it is known: it is frame 1, or the one in the mark. Otherwise,
// after older segments were dropped, it is taken from the segment's first frame.
func (s *scanner) findStart(file numberedFile) {
	switch {
	case s.positionKnown: // set by the caller
	case file.number == origin.frame:
		s.positionKnown = true
	case file.number == s.mark.end.frame:
		s.result.next, s.positionKnown = s.mark.end, true
	}
}

// takeFirstFrame takes the position from the first frame of a log whose beginning was dropped.
func (s *scanner) takeFirstFrame(file numberedFile, f frame, here *segment) *fault {
	if f.index != file.number {
		return newFault(16, fmt.Sprintf("frame %d", file.number), fmt.Sprintf("frame %d", f.index))
	}
	s.result.next = position{frame: f.index, sequence: f.first, chain: f.chain}
	s.positionKnown = true
	here.start = s.result.next
	return nil
}

// accept counts a whole frame.
func (s *scanner) accept(at location, f frame, here *segment, n int) error {
	if err := s.compareWithMark(at); err != nil {
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

// compareWithMark checks the position at the frame that the mark names. A difference means an older or foreign copy of
// the log: an unbroken chain that is not the acknowledged one.
func (s *scanner) compareWithMark(at location) error {
	if s.result.next.frame != s.mark.end.frame || s.result.next == s.mark.end {
		return nil
	}
	return s.damageError(at.segment, at.offset, newFault(0,
		fmt.Sprintf("record %d after checksum %08x, as in the mark", s.mark.end.sequence, s.mark.end.chain),
		fmt.Sprintf("record %d after %08x", s.result.next.sequence, s.result.next.chain)))
}

// classify decides between a torn tail and damage.
func (s *scanner) classify(path string, data []byte, off int, bad *fault, f frame, last bool) error {
	if bad.torn && f.index != 0 && s.positionKnown {
		// The header is intact although the rest is not, so it must be the right one.
		if other := f.checkPosition(s.result.next); other != nil {
			bad = other
		}
	}
	if !bad.torn || !last || !s.positionKnown {
		return s.damageError(path, int64(off), bad)
	}
	rest := data[off:]
	if later, at := findFrame(rest, s.result.next.frame); at >= 0 {
		bad.found += fmt.Sprintf(", although frame %d at offset %d is intact", later.index, off+at)
		return s.damageError(path, int64(off), bad)
	}
	if len(rest) > entryBytesMax {
		bad.found += fmt.Sprintf(", and %d bytes, more than one batch can leave", len(rest))
		return s.damageError(path, int64(off), bad)
	}
	if s.mark.end.frame > s.result.next.frame {
		return bad.in(path, int64(off), s.result.next.sequence, hintAcknowledged)
	}
	s.result.torn = int64(len(rest))
	return nil
}

func (s *scanner) damageError(path string, offset int64, bad *fault) error {
	return bad.in(path, offset, s.result.next.sequence, hintRestore)
}

// checkEnd checks that the scanned segments reach the end.
func (s *scanner) checkEnd(end position) error {
	if s.result.next == end {
		return nil
	}
	path, bytes := s.result.end()
	bad := newFault(0, fmt.Sprintf("records up to %d", end.sequence-1), fmt.Sprintf("the end at record %d", s.result.last()))
	return bad.in(path, bytes, s.result.next.sequence, hintAcknowledged)
}

// readSegment reads a file into a buffer that the next read overwrites.
func (s *scanner) readSegment(path string) (data []byte, err error) {
	err = withFile(path, fileRead, func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Size() > segmentFileBytesMax {
			return s.damageError(path, segmentFileBytesMax,
				newFault(0, fmt.Sprintf("a segment of at most %d bytes", segmentFileBytesMax), fmt.Sprint(info.Size())))
		}
		data = s.buffered(int(info.Size()))
		if _, err := io.ReadFull(f, data); err != nil {
			return fmt.Errorf("scan %s: %w", path, err)
		}
		return nil
	})
	return data, err
}

// readPrefix reads the bytes that a segment is known to have; the file may have grown.
func (s *scanner) readPrefix(here segment) (data []byte, err error) {
	data = s.buffered(int(here.bytes))
	err = withFile(here.path, fileRead, func(f *os.File) error {
		n, err := io.ReadFull(f, data)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			bad := newFault(n, fmt.Sprintf("a segment of %d bytes", here.bytes), fmt.Sprintf("the end after %d", n))
			return bad.in(here.path, 0, s.result.next.sequence, hintAcknowledged)
		}
		return err
	})
	return data, err
}

// buffered is a buffer of size bytes that the next call overwrites.
func (s *scanner) buffered(size int) []byte {
	s.buffer = slices.Grow(s.buffer[:0], size)
	return s.buffer[:size]
}

package wal

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// segment is one file of the log, a list of frames (batches of records).
type segment struct {
	path  string
	start position // position of the first frame, which may not exist yet
	bytes int64    // size of the complete frames in the file
}

// frameVisitor is called for each frame, with its place in a segment.
type frameVisitor func(path string, offset int64, f frame) error

// scanResult is the result of a scan: the longest valid beginning of the segments.
type scanResult struct {
	segments []segment
	next     position // required position of the next frame
	frames   uint64
	records  uint64
	bytes    int64
	torn     int64 // bytes of an interrupted write after the last valid frame
}

// first returns the sequence number of the oldest record, or of the next record if the log is empty.
func (r *scanResult) first() uint64 {
	if len(r.segments) == 0 {
		return r.next.sequence
	}
	return r.segments[0].start.sequence
}

// last returns the sequence number of the newest record, or 0 if there never was one.
func (r *scanResult) last() uint64 { return r.next.sequence - 1 }

// end returns the file and the offset of the end of the valid frames.
func (r *scanResult) end() (string, int64) {
	if len(r.segments) == 0 {
		return "the first segment", 0
	}
	last := r.segments[len(r.segments)-1]
	return last.path, last.bytes
}

// checkEnd checks that the frames reach a position at least, and the position itself if they end there.
func (r *scanResult) checkEnd(end position) error {
	switch {
	case r.next.frame < end.frame:
		return r.damageAtEnd(
			fmt.Sprintf("records up to %d in frame %d, as in the mark", end.sequence-1, end.frame-1),
			fmt.Sprintf("the end at record %d in frame %d", r.last(), r.next.frame-1))
	case r.next.frame == end.frame && r.next != end:
		return r.damageAtEnd(
			fmt.Sprintf("record %d with checksum %08x at the end, as in the mark", end.sequence-1, end.chain),
			fmt.Sprintf("record %d with %08x", r.last(), r.next.chain))
	}
	return nil
}

func (r *scanResult) damageAtEnd(expected, found string) error {
	path, bytes := r.end()
	hint := hintAcknowledged
	if len(r.segments) == 0 {
		hint = hintNoSegment
	}
	return newFault(0, expected, found).errorIn(path, bytes, r.next.sequence, hint)
}

// scanner reads segments in order and checks that their frames form one unbroken chain.
type scanner struct {
	mark          mark // high-water mark, the required end of the log; zero if lost
	buffer        []byte
	visit         frameVisitor // may be nil
	result        scanResult
	positionKnown bool // false until the position of the first frame (result.next) is known
}

// scan verifies segments. Errors: *DamageError, *FormatError, and errors of visit and of reading. After an error the
// result ends before the error's position. Danger: scan segments before tidwall/wal opens them. With a damaged segment
// that library panics, or returns records that were never written.
func scan(files []numberedFile, m mark, visit frameVisitor) (scanResult, error) {
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

func (s *scanner) scanFrames(file numberedFile, data []byte, last bool) error {
	s.result.segments = append(s.result.segments, segment{path: file.path, start: s.result.next})
	current := &s.result.segments[len(s.result.segments)-1]
	if len(data) == 0 && (!last || !s.positionKnown) {
		return s.damageError(file.path, 0, newFault(0, "a frame", "an empty file"))
	}
	for off := 0; off < len(data); {
		f, n, fault := decodeEntry(data[off:])
		switch {
		case fault != nil:
		case s.positionKnown:
			fault = f.checkPosition(s.result.next)
		default:
			fault = s.takeFirstFrame(file, f, current)
		}
		if fault != nil {
			return s.classify(file.path, data, off, fault, f, last)
		}
		if err := s.accept(int64(off), f, current, n); err != nil {
			return err
		}
		off += n
	}
	return nil
}

// checkSegmentName checks that the number in a segment's name follows the previous segment.
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

// findStart sets the position of the first segment if its first frame is frame 1, or the frame after the high-water
// mark. In all other cases older segments were dropped, and takeFirstFrame sets the position.
func (s *scanner) findStart(file numberedFile) {
	switch {
	case file.number == origin.frame:
		s.positionKnown = true
	case file.number == s.mark.end.frame:
		s.result.next, s.positionKnown = s.mark.end, true
	}
}

// takeFirstFrame takes the position from the first frame of the log, after the oldest segments were dropped.
func (s *scanner) takeFirstFrame(file numberedFile, f frame, current *segment) *formatFault {
	if f.index != file.number {
		return newFault(16, fmt.Sprintf("frame %d", file.number), fmt.Sprintf("frame %d", f.index))
	}
	s.result.next = position{frame: f.index, sequence: f.first, chain: f.chain}
	s.positionKnown = true
	current.start = s.result.next
	return nil
}

// accept counts a valid frame of n bytes and calls visit with it.
func (s *scanner) accept(offset int64, f frame, current *segment, n int) error {
	if err := s.compareWithMark(current.path, offset); err != nil {
		return err
	}
	if s.visit != nil {
		if err := s.visit(current.path, offset, f); err != nil {
			return err
		}
	}
	s.result.next = f.next()
	s.result.frames++
	s.result.records += uint64(f.count)
	s.result.bytes += int64(n)
	current.bytes += int64(n)
	return nil
}

// compareWithMark checks the frame after the high-water mark. If its position differs from the mark, the log is an
// older copy, or a copy of another log. Its frames are valid, but its records are not the acknowledged ones.
func (s *scanner) compareWithMark(path string, offset int64) error {
	if s.result.next.frame != s.mark.end.frame || s.result.next == s.mark.end {
		return nil
	}
	return s.damageError(path, offset, newFault(0,
		fmt.Sprintf("record %d after checksum %08x, as in the mark", s.mark.end.sequence, s.mark.end.chain),
		fmt.Sprintf("record %d after %08x", s.result.next.sequence, s.result.next.chain)))
}

// classify decides whether a fault is a torn tail (an incomplete last write) or damage. It records a torn tail in the
// result and returns damage as an error.
func (s *scanner) classify(path string, data []byte, off int, fault *formatFault, f frame, last bool) error {
	if fault.torn && f.index != 0 && s.positionKnown {
		// The header is intact. If the cause is an interrupted write, its position is right.
		if positionFault := f.checkPosition(s.result.next); positionFault != nil {
			fault = positionFault
		}
	}
	if !fault.torn || !last || !s.positionKnown {
		return s.damageError(path, int64(off), fault)
	}
	tail := data[off:]
	if later, n := findFrame(tail, s.result.next.frame); n >= 0 {
		fault.found += fmt.Sprintf(", although frame %d at offset %d is intact", later.index, off+n)
		return s.damageError(path, int64(off), fault)
	}
	if len(tail) > entryBytesMax {
		fault.found += fmt.Sprintf(", and %d bytes, more than one batch can leave", len(tail))
		return s.damageError(path, int64(off), fault)
	}
	if s.mark.end.frame > s.result.next.frame {
		return fault.errorIn(path, int64(off), s.result.next.sequence, hintAcknowledged)
	}
	s.result.torn = int64(len(tail))
	return nil
}

func (s *scanner) damageError(path string, offset int64, fault *formatFault) error {
	return fault.errorIn(path, offset, s.result.next.sequence, hintRestore)
}

// readSegment reads a file into the scanner's buffer.
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
		s.buffer = slices.Grow(s.buffer[:0], int(info.Size()))
		data = s.buffer[:info.Size()]
		if _, err := io.ReadFull(f, data); err != nil {
			return fmt.Errorf("scan %s: %w", path, err)
		}
		return nil
	})
	return data, err
}

package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Report describes a log directory.
type Report struct {
	First    uint64 // sequence number of the oldest record; Last+1 if the log has none
	Last     uint64 // sequence number of the newest record, 0 if there never was one
	Segments int
	Batches  uint64
	Records  uint64
	LogBytes int64

	TornBytes     int64 // size of a torn tail (an incomplete last write); Open moves it to a file
	AmbiguousTail bool  // acknowledged records may be missing at the end, but the high-water mark can't tell

	Mark                MarkState
	Snapshots           []SnapshotReport // sorted by sequence number
	UnfinishedSnapshots []string         // files; Open removes them
}

// Verify verifies every byte of the log in dir and changes nothing. Another process may have the log open; then Mark is
// MarkInUse. Errors: *DamageError, *FormatError, and errors of reading. After an error the report contains everything
// read before.
func Verify(dir string) (Report, error) {
	x, inUse, err := examineInUse(dir, nil)
	r := x.report()
	if inUse { // a batch in progress is not on disk yet, and the mark is behind it
		r.TornBytes, r.AmbiguousTail, r.Mark = 0, false, MarkInUse
	}
	return r, err
}

// besideTries is the maximum number of attempts to examine a log that changes meanwhile.
const besideTries = 10

// examineInUse calls examine under the shared lock. If another process has the log open, it calls examine without a
// lock, and repeats the call after an error, because that process appends to files and removes the oldest.
func examineInUse(dir string, visit frameVisitor) (x examination, inUse bool, err error) {
	err = withSharedLock(dir, func() error {
		x, err = examine(dir, visit)
		return err
	})
	for try := 0; errors.Is(err, ErrLocked) || inUse && err != nil && try < besideTries; try++ {
		inUse = true
		x, err = examine(dir, visit)
	}
	return x, inUse, err
}

func (x *examination) report() Report {
	return Report{
		First: x.log.first(), Last: x.log.last(), Segments: len(x.log.segments),
		Batches: x.log.frames, Records: x.log.records, LogBytes: x.log.bytes,
		TornBytes: x.log.torn, AmbiguousTail: x.ambiguousTail(), Mark: x.markState, Snapshots: x.snapshots,
		UnfinishedSnapshots: x.files.temps,
	}
}

// Exists reports whether dir has files of a log. It checks only the names. A missing directory has no files.
func Exists(dir string) (bool, error) {
	names, err := Files(dir)
	return len(names) > 0, err
}

// Files returns the paths of the files of the log in dir: the high-water mark, segments, snapshots, and unfinished
// snapshots. It omits the lock, files moved aside and other files.
func Files(dir string) ([]string, error) {
	files, err := listDir(dir)
	names := files.mark
	for _, file := range slices.Concat(files.segments, files.snapshots) {
		names = append(names, file.path)
	}
	return slices.Concat(names, files.temps, files.foreign), err
}

// CopyFiles calls visit for each file of the log in dir: the high-water mark, snapshots, segments. In this order the
// files can be copied while another process has the log open. CopyFiles does not verify them. The newest segment may
// end in an incomplete batch; opening the copy verifies it and cuts that off. If the other process removes a file
// meanwhile, the error is fs.ErrNotExist; then repeat the call. The first error of visit ends CopyFiles.
func CopyFiles(dir string, visit func(name string, content io.Reader) error) error {
	copyFile := func(path string) error {
		return withFile(path, fileRead, func(f *os.File) error { return visit(filepath.Base(path), f) })
	}
	// The mark is copied before the other files are listed, so that the copy does not end before its mark.
	if err := copyFile(filepath.Join(dir, markName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	files, err := listDir(dir)
	if err != nil {
		return err
	}
	for _, file := range slices.Concat(files.snapshots, files.segments) {
		if err := copyFile(file.path); err != nil {
			return err
		}
	}
	return nil
}

// Entry is one record visited by Dump.
type Entry struct {
	Sequence uint64
	Segment  string // path of the file
	Offset   int64  // offset of the record's frame (batch) in the file
	Record   []byte // valid only during the call
}

// Dump calls visit for each record of the log in dir, in order, and changes nothing. It visits all records before
// damage, and none of a torn tail. Another process may have the log open. Errors: those of Verify, and visit's first
// error, which ends Dump.
func Dump(dir string, visit func(Entry) error) error {
	var last uint64 // newest record visited, also by an earlier try
	var visitErr error
	_, _, err := examineInUse(dir, func(segment string, offset int64, f frame) error {
		visitErr = cmp.Or(visitErr, f.records(func(sequence uint64, record []byte) error {
			if sequence <= last {
				return nil
			}
			last = sequence
			return visit(Entry{Sequence: sequence, Segment: segment, Offset: offset, Record: record})
		}))
		return visitErr
	})
	return err
}

// withSharedLock calls read under the shared lock, so that no other process writes to dir meanwhile. ErrLocked means
// that another process has the log open.
func withSharedLock(dir string, read func() error) (err error) {
	if err := isDir(dir); err != nil {
		return err
	}
	lockFile, err := lockShared(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock(lockFile)) }()
	return read()
}

// examination is the verified contents of a log directory.
type examination struct {
	files     listing
	mark      mark
	markState MarkState
	snapshots []SnapshotReport // sorted by sequence number, lowest first
	log       scanResult
}

// examine verifies every file of the log and changes nothing. It calls visit (may be nil) for each frame (batch of
// records). Errors: *DamageError, *FormatError, and errors of reading and of visit. After an error the result contains
// everything read before.
func examine(dir string, visit frameVisitor) (examination, error) {
	var x examination
	var err error
	x.log.next = origin
	if x.mark, x.markState, err = readMark(dir); err != nil { // before the files, which may grow beyond the mark meanwhile
		return x, err
	}
	if x.files, err = listDir(dir); err != nil {
		return x, err
	}
	if x.snapshots, err = readSnapshots(x.files.snapshots); err != nil {
		return x, err
	}
	if len(x.files.foreign) > 0 {
		return x, &DamageError{
			File: x.files.foreign[0], Expected: "only files of tasard", Hint: hintForeign,
			Found: "a file that would change the log",
		}
	}
	if x.log, err = scan(x.files.segments, x.mark, visit); err != nil {
		return x, err
	}
	if err := x.checkMark(); err != nil {
		return x, err
	}
	if err := x.checkSnapshots(); err != nil {
		return x, err
	}
	for _, damage := range x.damagedSnapshots() {
		damage.Hint = hintCovered
	}
	return x, nil
}

// checkMark compares the beginning and the end of the log with the high-water mark, which records how far the log was
// on disk.
func (x *examination) checkMark() error {
	if x.markState == MarkLost {
		return nil
	}
	if err := x.log.checkEnd(x.mark.end); err != nil {
		return err
	}
	if len(x.log.segments) > 0 && x.log.segments[0].start.frame > x.mark.first {
		head := x.log.segments[0]
		return &DamageError{
			File: head.path, Sequence: head.start.sequence, Hint: hintAcknowledged,
			Expected: fmt.Sprintf("a segment that begins at or before frame %d, as in the mark", x.mark.first),
			Found:    fmt.Sprintf("frame %d as the oldest", head.start.frame),
		}
	}
	return nil
}

// checkSnapshots checks that the log contains every record after the newest undamaged snapshot. It also checks that the
// log does not end before a snapshot, because snapshots are written only after their records are on disk.
func (x *examination) checkSnapshots() error {
	if n := len(x.snapshots); n > 0 && x.snapshots[n-1].Sequence > x.log.last() {
		newest := x.snapshots[n-1]
		return x.log.damageAtEnd(fmt.Sprintf("records up to %d, as in the name of %s", newest.Sequence, newest.File),
			fmt.Sprintf("the end at record %d", x.log.last()))
	}
	base := x.snapshotSequence()
	if x.log.first() <= base+1 {
		return nil
	}
	if damaged := x.damagedSnapshots(); len(damaged) > 0 {
		d := *damaged[len(damaged)-1]
		d.Hint = fmt.Sprintf("the log begins at record %d and the snapshot before ends at %d, so this one is needed; restore it from a backup",
			x.log.first(), base)
		return &d
	}
	return &DamageError{
		File: x.log.segments[0].path, Sequence: base + 1, Hint: hintRestore,
		Expected: fmt.Sprintf("records from %d on, after the newest snapshot", base+1),
		Found:    fmt.Sprintf("record %d as the oldest", x.log.first()),
	}
}

// snapshotSequence returns the number of the newest undamaged snapshot's last record, or 0.
func (x *examination) snapshotSequence() uint64 { return newestUndamaged(x.snapshots).Sequence }

func (x *examination) damagedSnapshots() []*DamageError {
	var damaged []*DamageError
	for _, s := range x.snapshots {
		if s.Damage != nil {
			damaged = append(damaged, s.Damage)
		}
	}
	return damaged
}

// ambiguousTail reports whether acknowledged records may be missing at the end of the log. This is possible if the
// high-water mark is lost, or if there is a torn tail (an incomplete last write) after the mark.
func (x *examination) ambiguousTail() bool {
	if x.markState == MarkLost {
		return x.log.frames > 0 || x.log.torn > 0
	}
	return x.log.torn > 0 && (x.markState == MarkHalf || x.mark.end.frame < x.log.next.frame)
}

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

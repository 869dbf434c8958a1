package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// verdict is what a reader made of a directory.
type verdict struct {
	records   [][]byte
	told      bool // it said that something was not as it should be
	ambiguous bool
	err       error // it refused
}

// reader reads a directory without changing it. The sweeps take one, so that their controls can hand in
// readers with a planted bug and show that the sweep would have caught them.
type reader func(dir string) verdict

// ours is the reader under test: what Open decides on.
func ours(dir string) verdict {
	var v verdict
	x, err := examine(dir, func(_ place, f frame) error {
		return f.records(func(_ uint64, r []byte) error {
			v.records = append(v.records, slices.Clone(r))
			return nil
		})
	})
	v.err = err
	v.ambiguous = x.ambiguous()
	v.told = v.ambiguous || x.extent.tear != nil || x.markState != MarkWhole || len(x.damagedSnapshots()) > 0
	return v
}

// withoutMark is ours with a planted bug: it never looks at the mark.
func withoutMark(dir string) verdict {
	path := filepath.Join(dir, markName)
	if err := os.Rename(path, path+"-hidden"); err != nil {
		return verdict{err: err}
	}
	v := ours(dir)
	v.ambiguous, v.told = false, false
	v.err = errors.Join(v.err, os.Rename(path+"-hidden", path))
	return v
}

// withoutChecksum is a planted bug: it takes what the lengths delimit, as the library does.
func withoutChecksum(dir string) verdict {
	return naive(dir, func(data []byte, _ *position) (frame, int, bool) {
		size, n := binary.Uvarint(data)
		if n <= 0 || size < frameBytesMin || uint64(len(data)-n) < size {
			return frame{}, 0, false
		}
		f := frame{index: 1, first: 1, payload: data[n+frameHeaderBytes : n+int(size)-frameTrailerBytes]}
		return f, n + int(size), checkPayloadLoosely(f)
	})
}

// withoutChain is a planted bug: every frame is checked, but not whether it follows the one before.
func withoutChain(dir string) verdict {
	return naive(dir, func(data []byte, _ *position) (frame, int, bool) {
		f, n, bad := decodeEntry(data)
		return f, n, bad == nil
	})
}

// withoutTrailer is a planted bug: position and chain are checked, the checksum is believed.
func withoutTrailer(dir string) verdict {
	return naive(dir, func(data []byte, at *position) (frame, int, bool) {
		size, n := binary.Uvarint(data)
		if n <= 0 || size < frameBytesMin || uint64(len(data)-n) < size {
			return frame{}, 0, false
		}
		body := data[n : n+int(size)]
		f, _, bad := decodeHeader(body)
		if bad != nil || f.follows(*at) != nil {
			return frame{}, 0, false
		}
		f.payload = body[frameHeaderBytes : len(body)-frameTrailerBytes]
		f.checksum = binary.LittleEndian.Uint32(body[len(body)-frameTrailerBytes:])
		*at = f.next()
		return f, n + int(size), checkPayloadLoosely(f)
	})
}

func checkPayloadLoosely(f frame) bool {
	for rest := f.payload; len(rest) > 0; {
		if len(rest) < recordPrefixBytes {
			return false
		}
		n := uint64(binary.LittleEndian.Uint32(rest))
		if n > uint64(len(rest)-recordPrefixBytes) {
			return false
		}
		rest = rest[recordPrefixBytes+int(n):]
	}
	return true
}

// naive reads all segments with next and ends at the first entry that it does not take.
func naive(dir string, next func(data []byte, at *position) (frame, int, bool)) verdict {
	l, err := list(dir)
	if err != nil {
		return verdict{err: err}
	}
	var v verdict
	at := origin
	for _, file := range l.segments {
		data, err := os.ReadFile(file.path)
		if err != nil {
			return verdict{err: err}
		}
		for len(data) > 0 {
			f, n, ok := next(data, &at)
			if !ok {
				v.told, v.err = true, &DamageError{File: file.path}
				return v
			}
			_ = f.records(func(_ uint64, r []byte) error {
				v.records = append(v.records, slices.Clone(r))
				return nil
			})
			data = data[n:]
		}
	}
	return v
}

// history is a written log: its files and what they hold.
type history struct {
	files   map[string][]byte
	records [][]byte
	batches []int    // records up to the end of each batch
	marks   [][]byte // the mark as it was after each batch
}

func write(t testing.TB, batches int, snapshots ...int) history {
	t.Helper()
	dir := scratch(t)
	l := mustOpen(t, dir, testOptions())
	var h history
	one := func(n int) {
		_, err := l.Append(batchFrom(l.Last()+1, n))
		must(t, err)
		h.batches = append(h.batches, int(l.Last()))
		data, err := os.ReadFile(filepath.Join(dir, markName))
		must(t, err)
		h.marks = append(h.marks, data)
	}
	for i := range batches {
		one(1 + i%3)
		if slices.Contains(snapshots, i) {
			mustSnapshot(t, l, l.Last())
		}
	}
	for last := l.segments[len(l.segments)-1]; last.bytes < 200; last = l.segments[len(l.segments)-1] {
		one(2) // the sweeps need a last segment that is not empty
	}
	for seq := range l.Last() {
		h.records = append(h.records, record(seq+1))
	}
	mustClose(t, l)
	h.files = files(t, dir)
	return h
}

// judge says what is wrong with a verdict on a damaged copy of the history, "" when nothing is.
func (h history) judge(v verdict, acked bool) string {
	if v.err != nil {
		var damage *DamageError
		var format *FormatError
		switch {
		case errors.As(v.err, &damage) && damage.File != "", errors.As(v.err, &format):
			return ""
		}
		return fmt.Sprintf("refused without a place: %v", v.err)
	}
	n := len(v.records)
	if n > len(h.records) || !slices.EqualFunc(v.records, h.records[:n], bytes.Equal) {
		return fmt.Sprintf("%d records that were not written so", n)
	}
	if n > 0 && !slices.Contains(h.batches, n) {
		return fmt.Sprintf("half a batch: %d records", n)
	}
	if acked && n < len(h.records) {
		return fmt.Sprintf("lost %d acknowledged records", len(h.records)-n)
	}
	if !v.told {
		return "silent"
	}
	return ""
}

// tally counts what a sweep did.
type tally struct {
	cases, refused, told, ambiguous, bad int
	first                                string
}

func (c *tally) add(what string, v verdict, complaint string) {
	c.cases++
	switch {
	case v.err != nil:
		c.refused++
	case v.ambiguous:
		c.ambiguous++
	case v.told:
		c.told++
	}
	if complaint != "" {
		c.bad++
		if c.first == "" {
			c.first = what + ": " + complaint
		}
	}
}

func (c *tally) String() string {
	return fmt.Sprintf("%d cases: %d refused, %d told, %d ambiguous, %d bad (%s)", c.cases, c.refused, c.told, c.ambiguous, c.bad, c.first)
}

// sweepFlips flips each stride-th bit of every file that is named.
func sweepFlips(t testing.TB, h history, read reader, stride int, acked bool, names []string) *tally {
	t.Helper()
	dir := filepath.Join(scratch(t), "log")
	put(t, dir, h.files)
	c := &tally{}
	bit := 0
	for _, name := range names {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range h.files[name] {
			for k := range 8 {
				if bit++; bit%stride != 0 {
					continue
				}
				must(t, writeByte(f, i, b^1<<k))
				v := read(dir)
				c.add(fmt.Sprintf("%s byte %d bit %d", name, i, k), v, h.judge(v, acked))
			}
			must(t, writeByte(f, i, b))
		}
		must(t, f.Close())
	}
	return c
}

func writeByte(f *os.File, at int, b byte) error {
	_, err := f.WriteAt([]byte{b}, int64(at))
	return err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func stride(full int) int {
	if underRace {
		return full * 11
	}
	return full
}

func TestW4_EveryBitFlipIsSeen(t *testing.T) {
	h := write(t, 20, 9, 15)
	c := sweepFlips(t, h, ours, stride(1), true, slices.Sorted(maps.Keys(h.files)))
	t.Logf("flips: %s", c)
	if c.bad > 0 || c.refused == 0 || c.told == 0 || c.ambiguous != 0 {
		t.Errorf("sweep: %s", c)
	}
}

func TestW4_BitFlipsWithoutAMarkAreAtMostAmbiguousInTheLastFrame(t *testing.T) {
	h := write(t, 20)
	mark := h.files[markName]
	delete(h.files, markName)
	names := segmentNames(h.files)
	c := sweepFlips(t, h, ours, stride(1), false, names)
	t.Logf("flips without a mark: %s", c)
	if c.bad > 0 || c.refused == 0 || c.ambiguous == 0 {
		t.Errorf("sweep: %s", c)
	}
	last := h.files[lastWithFrames(h.files)]
	if frames := frameOffsets(t, last); c.ambiguous > 8*(len(last)-frames[len(frames)-2]) {
		t.Errorf("%d flips are ambiguous, the last frame has only %d bits", c.ambiguous, 8*(len(last)-frames[len(frames)-2]))
	}
	h.files[markName] = mark
}

func TestW4_BitFlipControls(t *testing.T) {
	h := write(t, 20)
	names := segmentNames(h.files)
	for name, planted := range map[string]reader{
		"no checksum": withoutChecksum, "no frame checksum": withoutTrailer, "no mark": withoutMark,
	} {
		c := sweepFlips(t, h, planted, 5, true, names)
		t.Logf("%s: %s", name, c)
		if c.bad == 0 {
			t.Errorf("%s: the sweep did not notice the planted bug", name)
		}
	}
}

// frameOffsets returns where each frame of a segment begins, and the end.
func frameOffsets(t testing.TB, data []byte) []int {
	t.Helper()
	offsets := []int{0}
	for at := 0; at < len(data); {
		_, n, bad := decodeEntry(data[at:])
		if bad != nil {
			t.Fatal(bad.found)
		}
		at += n
		offsets = append(offsets, at)
	}
	return offsets
}

// lastWithFrames is the name of the last segment that is not empty.
func lastWithFrames(all map[string][]byte) string {
	names := segmentNames(all)
	for _, name := range slices.Backward(names) {
		if len(all[name]) > 0 {
			return name
		}
	}
	return ""
}

func TestW4_SectorLosses(t *testing.T) {
	h := write(t, 120, 40, 70)
	rounds := 1000
	if underRace {
		rounds = 150
	}
	c := sweepSectors(t, h, ours, rounds)
	t.Logf("sector losses: %s", c)
	if c.bad > 0 || c.refused == 0 {
		t.Errorf("sweep: %s", c)
	}
	if c := sweepSectors(t, h, withoutChecksum, rounds); c.bad == 0 {
		t.Error("control: the sweep did not notice a reader without checksums")
	}
}

func sweepSectors(t testing.TB, h history, read reader, rounds int) *tally {
	t.Helper()
	r := rand.New(rand.NewSource(4))
	dir := filepath.Join(scratch(t), "log")
	put(t, dir, h.files)
	names := slices.DeleteFunc(segmentNames(h.files), func(n string) bool { return len(h.files[n]) == 0 })
	c := &tally{}
	for range rounds {
		name := names[r.Intn(len(names))]
		data := slices.Clone(h.files[name])
		at := 512 * r.Intn((len(data)+511)/512)
		sector := data[at:min(at+512, len(data))]
		fill := byte(0)
		if r.Intn(2) == 0 {
			fill = byte(r.Intn(256))
		}
		for i := range sector {
			sector[i] = fill
		}
		must(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		v := read(dir)
		must(t, os.WriteFile(filepath.Join(dir, name), h.files[name], 0o600))
		c.add(fmt.Sprintf("%s sector at %d filled with %d", name, at, fill), v, h.judge(v, true))
	}
	return c
}

func TestW4_ZeroRuns(t *testing.T) {
	h := write(t, 20)
	c, control := &tally{}, &tally{}
	dir := filepath.Join(scratch(t), "log")
	put(t, dir, h.files)
	for _, name := range segmentNames(h.files) {
		for at := 0; at < len(h.files[name]); at += stride(1) {
			data := slices.Clone(h.files[name])
			run := data[at:min(at+64, len(data))]
			if len(bytes.Trim(run, "\x00")) == 0 {
				continue
			}
			clear(run)
			must(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
			what := fmt.Sprintf("%s zeros at %d", name, at)
			v := ours(dir)
			c.add(what, v, h.judge(v, true))
			v = withoutChecksum(dir)
			control.add(what, v, h.judge(v, true))
		}
		must(t, os.WriteFile(filepath.Join(dir, name), h.files[name], 0o600))
	}
	t.Logf("zero runs: %s; control: %s", c, control)
	if c.bad > 0 || c.refused != c.cases || c.cases == 0 || control.bad == 0 {
		t.Errorf("sweep: %s; control: %s", c, control)
	}
}

func TestZerosBehindTheEndAreATornTail(t *testing.T) {
	h := write(t, 20)
	name := lastWithFrames(h.files)
	h.files[name] = append(slices.Clone(h.files[name]), make([]byte, 40)...)
	dir := filepath.Join(scratch(t), "log")
	put(t, dir, h.files)
	l := mustOpen(t, dir, testOptions())
	defer mustClose(t, l)
	if r := l.Recovery(); r.TornBytes != 40 || r.Last != uint64(len(h.records)) || r.AmbiguousTail {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(l.Recovery().TornFile, ".torn-20260102T030405") {
		t.Errorf("kept in %s", l.Recovery().TornFile)
	}
}

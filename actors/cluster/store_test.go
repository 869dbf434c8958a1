package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/tasard/tasard/wal"
)

// dirFiles is the content of a directory of files.
type dirFiles map[string][]byte

func readFiles(t testing.TB, dir string) dirFiles {
	t.Helper()
	files := dirFiles{}
	paths, err := wal.Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// open opens a store on a copy of the files.
func (f dirFiles) open(t testing.TB) *store {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, raftDirName), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range f {
		if err := os.WriteFile(filepath.Join(dir, raftDirName, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return openTestStore(t, dir)
}

func openTestStore(t testing.TB, dir string) *store {
	t.Helper()
	s, err := openStore(dir, wal.Options{ReserveBytes: -1, Clock: realClock}, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	return s
}

// describe returns the votes, the snapshot and the entries after it, and checks that raft starts with them.
func (s *store) describe(t testing.TB) string {
	t.Helper()
	hard, _, err := s.InitialState()
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	index := snapshot.GetMetadata().GetIndex()
	var text strings.Builder
	fmt.Fprintf(&text, "term %d, vote %d, committed %d; snapshot of %d, term %d;", hard.GetTerm(), hard.GetVote(), hard.GetCommit(), index, snapshot.GetMetadata().GetTerm())
	last, err := s.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	if last > index {
		entries, err := s.Entries(index+1, last+1, ^uint64(0))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			fmt.Fprintf(&text, " %d@%d %08x", e.GetIndex(), e.GetTerm(), checksum(e.GetData()))
		}
	}
	_, err = raft.NewRawNode(&raft.Config{
		ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: s, MaxInflightMsgs: 1, MaxSizePerMsg: 1, Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
	})
	if err != nil {
		t.Error(err)
	}
	return text.String()
}

// ready has entries from an index on, and votes.
func ready(term, first uint64, count int, vote, commit uint64) *raft.Ready {
	rd := &raft.Ready{MustSync: true, HardState: &pb.HardState{Term: proto.Uint64(term), Vote: proto.Uint64(vote), Commit: proto.Uint64(commit)}}
	for i := range uint64(count) {
		rd.Entries = append(rd.Entries, &pb.Entry{Term: proto.Uint64(term), Index: proto.Uint64(first + i), Data: fmt.Appendf(nil, "entry %d of term %d", first+i, term)})
	}
	return rd
}

// TestStore_PowerCut cuts the power at bytes of everything that a store writes, also while a suffix of entries is being
// replaced and while a checkpoint is being written: the store then has what it had before, or all of it. With what it
// has it goes on.
func TestStore_PowerCut(t *testing.T) {
	dir := t.TempDir()
	s := openTestStore(t, dir)
	save := func(rd *raft.Ready) func(*store) error { return func(s *store) error { return s.save(rd) } }
	snapshot := &pb.Snapshot{Data: []byte(`{"sequence": 40}`), Metadata: &pb.SnapshotMetadata{Index: proto.Uint64(40), Term: proto.Uint64(5), ConfState: &pb.ConfState{Voters: []uint64{1}}}}
	for number, step := range []func(*store) error{
		func(s *store) error { return s.bootstrap(1, replicated{Stream: "1f"}) },
		save(ready(1, 2, 5, 1, 3)),
		save(ready(2, 5, 3, 2, 3)), // replaces 5 and 6
		save(&raft.Ready{MustSync: true, HardState: &pb.HardState{Term: proto.Uint64(3), Vote: proto.Uint64(3), Commit: proto.Uint64(3)}}),
		save(ready(4, 4, 1, 1, 4)), // replaces 4 to 7
		func(s *store) error {
			return s.checkpoint(4, &pb.ConfState{Voters: []uint64{1}}, replicated{Stream: "1f", Sequence: 2})
		},
		save(ready(4, 5, 6, 1, 8)),
		save(ready(5, 9, 1, 1, 8)), // replaces 9 and 10, in a segment after the checkpoint
		func(s *store) error {
			return s.checkpoint(8, &pb.ConfState{Voters: []uint64{1}}, replicated{Stream: "1f", Sequence: 6})
		},
		save(&raft.Ready{MustSync: true, Snapshot: snapshot, HardState: &pb.HardState{Term: proto.Uint64(5), Vote: proto.Uint64(1), Commit: proto.Uint64(40)}}),
		save(ready(6, 41, 2, 1, 41)),
	} {
		files, before := readFiles(t, filepath.Join(dir, raftDirName)), s.describe(t)
		if err := step(s); err != nil {
			t.Fatal(err)
		}
		written, after := readFiles(t, filepath.Join(dir, raftDirName)), s.describe(t)
		if reopened := written.open(t).describe(t); reopened != after {
			t.Errorf("step %d, opened again: %s, want %s", number, reopened, after)
		}
		cuts := 0
		for name, content := range written {
			if name == "mark" || bytes.Equal(files[name], content) {
				continue
			}
			if strings.HasPrefix(name, "snapshot-") {
				name += ".tmp"
			}
			for length := len(files[name]); length <= len(content); length += 5 {
				if length+5 > len(content) {
					length = len(content)
				}
				cut, want := maps.Clone(files), before
				cut[name] = content[:length]
				if length == len(content) && !strings.HasSuffix(name, ".tmp") {
					want = after
				}
				recovered := cut.open(t)
				if got := recovered.describe(t); got != want {
					t.Fatalf("step %d, %s cut at %d of %d: %s, want %s", number, name, length, len(content), got, want)
				}
				if want != before {
					continue
				}
				if err := step(recovered); err != nil || recovered.describe(t) != after {
					t.Fatalf("step %d, %s cut at %d of %d, and again: %s, %v, want %s", number, name, length, len(content), recovered.describe(t), err, after)
				}
				if err := recovered.close(); err != nil {
					t.Fatal(err)
				}
				cuts++
			}
		}
		t.Logf("step %d: %d cuts; %s", number, cuts, after)
	}
}

// TestStore_CheckpointWaits: raft keeps the entries whose records the local log lacks.
func TestStore_CheckpointWaits(t *testing.T) {
	s := openTestStore(t, t.TempDir())
	if err := errors.Join(s.bootstrap(1, replicated{Stream: "1f"}), s.save(ready(1, 2, 5, 1, 6))); err != nil {
		t.Fatal(err)
	}
	r := &replica{c: new(Cluster), store: s}
	r.applied.Store(6)
	r.state.Store(&replicated{Stream: "1f", Sequence: 5})
	r.conf.Store(&pb.ConfState{Voters: []uint64{1}})
	for _, tt := range []struct{ last, want uint64 }{{4, 1}, {5, 6}} {
		r.c.last.Store(tt.last)
		err := r.compact()
		snapshot, snapshotErr := s.Snapshot()
		if got := snapshot.GetMetadata().GetIndex(); got != tt.want || err != nil || snapshotErr != nil {
			t.Errorf("%d records of 5: the checkpoint is of entry %d, want %d; %v, %v", tt.last, got, tt.want, err, snapshotErr)
		}
	}
}

// TestStore_Damage changes a bit of raft's log. The node does not start, says which file it is, and changes nothing.
func TestStore_Damage(t *testing.T) {
	c := valid()
	c.Dir, c.Log.ReserveBytes = t.TempDir(), -1
	s := openTestStore(t, c.Dir)
	if err := errors.Join(s.bootstrap(1, replicated{Stream: "1f"}), s.save(ready(1, 2, 5, 1, 3)), s.close()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(c.Dir, raftDirName)
	for name, content := range readFiles(t, dir) {
		path := filepath.Join(dir, name)
		if name == "mark" {
			continue
		}
		content[len(content)/2] ^= 1
		if err := errors.Join(writeIdentity(&c, identity{Stream: "1f"}), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
		var damage *wal.DamageError
		if node, err := Open(c); !errors.As(err, &damage) || !strings.Contains(err.Error(), path) {
			t.Errorf("opened %v, %v", node, err)
		}
		if got := readFiles(t, dir); !bytes.Equal(got[name], content) {
			t.Error("the damaged file was changed")
		}
	}
}

// TestStore_LargeBatch saves more entries at once than a batch of package wal may have. If the power is cut between two
// batches, the vote is not there: the node has not sent it.
func TestStore_LargeBatch(t *testing.T) {
	dir := t.TempDir()
	s := openTestStore(t, dir)
	if err := s.bootstrap(1, replicated{Stream: "1f"}); err != nil {
		t.Fatal(err)
	}
	files := readFiles(t, filepath.Join(dir, raftDirName))
	rd := ready(2, 2, 9, 3, 2)
	for _, e := range rd.Entries {
		e.Data = bytes.Repeat(e.Data, (frameHeaderBytes+recordBytesMax-1)/len(e.Data))
	}
	if err := s.save(rd); err != nil {
		t.Fatal(err)
	}
	written, after := readFiles(t, filepath.Join(dir, raftDirName)), s.describe(t)
	report, err := wal.Verify(filepath.Join(dir, raftDirName))
	if err != nil || report.Batches < 4 {
		t.Fatalf("%d batches, %v", report.Batches, err)
	}
	if got := written.open(t).describe(t); got != after {
		t.Errorf("opened again: %s, want %s", got, after)
	}
	segments := slices.Sorted(maps.Keys(written))
	segments = slices.DeleteFunc(segments, func(name string) bool { return name == "mark" })
	cut := maps.Clone(files)
	for _, name := range segments[:2] {
		cut[name] = written[name]
	}
	cut[segments[1]] = cut[segments[1]][:len(cut[segments[1]])-1]
	recovered := cut.open(t)
	hard, _, err := recovered.InitialState()
	last, lastErr := recovered.LastIndex()
	if err != nil || lastErr != nil || hard.GetTerm() != 1 || last < 2 || last > 9 {
		t.Errorf("cut between two batches: entries up to %d, term %d, %v, %v", last, hard.GetTerm(), err, lastErr)
	}
	if err := recovered.save(rd); err != nil || recovered.describe(t) != after {
		t.Errorf("and again: %s, %v, want %s", recovered.describe(t), err, after)
	}
}

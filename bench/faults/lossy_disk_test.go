//go:build faults

package faults

import (
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// lossyDisk is a file system in memory that forgets what was not synced, as a disk does that loses power. Of a file it keeps
// what was there at its last sync, of a directory the names that were; a file's sync does not keep its name. What came later is
// lost, or kept in part: see forget. Only for tests that run apart.
type lossyDisk struct {
	t      *testing.T
	place  string
	server *fuse.Server

	mu      sync.Mutex // guards all nodes too
	root    *lossyNode
	dead    bool // power is gone: everything fails until it is mounted again
	chance  *rand.Rand
	syncMax time.Duration // a sync takes a random time up to this
	syncs   int
	unkept  int // edits and names that were not synced when power went
	inParts int // of those edits, such as were kept in part
}

// edit is a change of a file's bytes: data at an offset, or with data nil its new size.
type edit struct {
	offset int64
	data   []byte
}

// naming is a change of a directory: names that come (a node) or go (nil), all of them at once.
type naming map[string]*lossyNode

// lossyNode is a file or a directory. The live names of a directory are in the tree of the library.
type lossyNode struct {
	fs.Inode
	disk      *lossyDisk
	directory bool

	live, kept []byte // of a file: as everybody sees it, and as it was at its last sync
	edits      []edit // since then
	names      map[string]*lossyNode
	namings    []naming // since the last sync of the directory
}

// newLossyDisk mounts an empty one.
func newLossyDisk(t *testing.T, seed uint64, syncMax time.Duration) *lossyDisk {
	t.Helper()
	l := &lossyDisk{t: t, place: filepath.Join(t.TempDir(), "lossy"), chance: rand.New(rand.NewPCG(seed, 1)), syncMax: syncMax}
	l.root = &lossyNode{disk: l, directory: true, names: map[string]*lossyNode{}}
	if err := mkdir(l.place); err != nil {
		t.Fatal(err)
	}
	l.mount()
	t.Cleanup(func() { _ = l.server.Unmount() }) // the mounts of the process end with it in any case
	return l
}

func (l *lossyDisk) mount() {
	l.t.Helper()
	second := time.Second
	server, err := fs.Mount(l.place, l.root, &fs.Options{
		EntryTimeout: &second, AttrTimeout: &second, NullPermissions: true,
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "lossyfs", Name: "lossyfs", MaxWrite: fuse.MAX_KERNEL_WRITE},
	})
	if err != nil {
		l.t.Fatalf("mount the lossy disk: %v", err)
	}
	l.server = server
}

// settle keeps everything, as sync does.
func (l *lossyDisk) settle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.root.settle()
}

func (n *lossyNode) settle() {
	n.sync()
	for _, child := range n.names {
		child.settle()
	}
}

// sync keeps a file's bytes or a directory's names; the caller holds the lock.
func (n *lossyNode) sync() {
	for _, e := range n.edits {
		n.kept = e.apply(n.kept)
	}
	for _, change := range n.namings {
		change.apply(n.names)
	}
	n.edits, n.namings = nil, nil
}

// apply changes bytes; a gap is filled with zeros.
func (e *edit) apply(bytes []byte) []byte {
	end := e.offset + int64(len(e.data))
	if e.data == nil && end < int64(len(bytes)) {
		return bytes[:end]
	}
	if grow := end - int64(len(bytes)); grow > 0 {
		bytes = append(bytes, make([]byte, grow)...)
	}
	copy(bytes[e.offset:], e.data)
	return bytes
}

func (c naming) apply(names map[string]*lossyNode) {
	for name, node := range c {
		if node == nil {
			delete(names, name)
		} else {
			names[name] = node
		}
	}
}

// cut takes the power: from this moment on nothing is kept any more, and everything fails. A sync that is under way fails too.
func (l *lossyDisk) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
}

// again mounts what the cut has left. Nobody may have a file of it open.
func (l *lossyDisk) again() {
	l.t.Helper()
	if err := l.server.Unmount(); err != nil {
		l.t.Fatalf("unmount the lossy disk: %v", err)
	}
	l.mu.Lock()
	l.root = l.root.remains(lossWay(l.chance.IntN(lossWays)))
	l.dead = false
	l.mu.Unlock()
	l.mount()
}

// lossWay is what a power cut does to what was not synced.
type lossWay int

const (
	lossWhole   lossWay = iota // it is gone
	lossPrefix                 // a prefix of it is there; the last write may be torn at any byte
	lossSectors                // any sectors of any of its writes are there, whatever their order
	lossWays    = 3
)

const sectorBytes = 512

// remains is the tree after a cut.
func (n *lossyNode) remains(way lossWay) *lossyNode {
	l := n.disk
	left := &lossyNode{disk: l, directory: n.directory}
	l.unkept += len(n.edits) + len(n.namings)
	if !n.directory {
		left.kept = n.parts(way)
		left.live = append([]byte(nil), left.kept...)
		return left
	}
	if way != lossWhole { // a journal keeps changes of names in their order
		for _, change := range n.namings[:l.chance.IntN(len(n.namings)+1)] {
			change.apply(n.names)
		}
	}
	left.names = map[string]*lossyNode{}
	for name, child := range n.names {
		left.names[name] = child.remains(way)
	}
	return left
}

// parts are the bytes of a file after a cut.
func (n *lossyNode) parts(way lossWay) []byte {
	chance, bytes := n.disk.chance, n.kept
	switch way {
	case lossPrefix:
		whole := chance.IntN(len(n.edits) + 1)
		for _, e := range n.edits[:whole] {
			bytes = e.apply(bytes)
		}
		if whole < len(n.edits) && len(n.edits[whole].data) > 0 {
			torn := n.edits[whole]
			torn.data = torn.data[:chance.IntN(len(torn.data))]
			if len(torn.data) > 0 {
				n.disk.inParts++
				bytes = torn.apply(bytes)
			}
		}
	case lossSectors:
		for _, e := range n.edits {
			if e.data == nil {
				if chance.IntN(2) == 0 {
					bytes = e.apply(bytes)
				}
				continue
			}
			n.disk.inParts++
			for from := 0; from < len(e.data); {
				to := min(len(e.data), from+sectorBytes-int(e.offset+int64(from))%sectorBytes)
				if sector := (edit{e.offset + int64(from), e.data[from:to]}); chance.IntN(2) == 0 {
					bytes = sector.apply(bytes)
				}
				from = to
			}
		}
	}
	return bytes
}

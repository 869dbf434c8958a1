//go:build faults

package faults

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// The system calls that a lossy disk knows: those of a program that writes files in one directory or below. There are no links, no
// special files, and no renames from one directory into another.

var (
	_ fs.NodeOnAdder   = (*lossyNode)(nil)
	_ fs.NodeCreater   = (*lossyNode)(nil)
	_ fs.NodeMkdirer   = (*lossyNode)(nil)
	_ fs.NodeUnlinker  = (*lossyNode)(nil)
	_ fs.NodeRmdirer   = (*lossyNode)(nil)
	_ fs.NodeRenamer   = (*lossyNode)(nil)
	_ fs.NodeOpener    = (*lossyNode)(nil)
	_ fs.NodeReader    = (*lossyNode)(nil)
	_ fs.NodeWriter    = (*lossyNode)(nil)
	_ fs.NodeFsyncer   = (*lossyNode)(nil)
	_ fs.NodeGetattrer = (*lossyNode)(nil)
	_ fs.NodeSetattrer = (*lossyNode)(nil)
	_ fs.NodeStatfser  = (*lossyNode)(nil)
)

func mkdir(path string) error { return os.Mkdir(path, 0o700) }

func (n *lossyNode) mode() uint32 {
	if n.directory {
		return syscall.S_IFDIR | 0o700
	}
	return syscall.S_IFREG | 0o600
}

// join makes a node known to the library, below n.
func (n *lossyNode) join(ctx context.Context, child *lossyNode) *fs.Inode {
	return n.NewPersistentInode(ctx, child, fs.StableAttr{Mode: child.mode() & syscall.S_IFMT})
}

// OnAdd gives the library the names that a power cut has left.
func (n *lossyNode) OnAdd(ctx context.Context) {
	for name, child := range n.names {
		n.AddChild(name, n.join(ctx, child), true)
	}
}

// working is EIO without power.
func (l *lossyDisk) working() syscall.Errno {
	if l.dead {
		return syscall.EIO
	}
	return fs.OK
}

// name notes a change of names, with the lock.
func (n *lossyNode) name(change naming) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if errno := n.disk.working(); errno != fs.OK {
		return errno
	}
	n.namings = append(n.namings, change)
	return fs.OK
}

// Create is open with O_CREAT.
func (n *lossyNode) Create(ctx context.Context, name string, _, _ uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	child := &lossyNode{disk: n.disk}
	out.Mode = child.mode()
	return n.join(ctx, child), nil, 0, n.name(naming{name: child})
}

// Mkdir is mkdir.
func (n *lossyNode) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	child := &lossyNode{disk: n.disk, directory: true, names: map[string]*lossyNode{}}
	out.Mode = child.mode()
	return n.join(ctx, child), n.name(naming{name: child})
}

// Unlink is unlink.
func (n *lossyNode) Unlink(_ context.Context, name string) syscall.Errno {
	return n.name(naming{name: nil})
}

// Rmdir is rmdir of an empty directory.
func (n *lossyNode) Rmdir(_ context.Context, name string) syscall.Errno {
	if child := n.GetChild(name); child != nil && len(child.Children()) > 0 {
		return syscall.ENOTEMPTY
	}
	return n.name(naming{name: nil})
}

// Rename is rename within a directory.
func (n *lossyNode) Rename(_ context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	child := n.GetChild(name)
	if to.EmbeddedInode() != n.EmbeddedInode() || flags != 0 || child == nil {
		return syscall.EXDEV
	}
	return n.name(naming{name: nil, newName: child.Operations().(*lossyNode)})
}

// Open is open without O_CREAT; what is read may come from the memory of the kernel until the disk is mounted again.
func (n *lossyNode) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, fs.OK
}

// Read is read.
func (n *lossyNode) Read(_ context.Context, _ fs.FileHandle, into []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if errno := n.disk.working(); errno != fs.OK {
		return nil, errno
	}
	from := min(int64(len(n.live)), offset)
	return fuse.ReadResultData(into[:copy(into, n.live[from:])]), fs.OK
}

// change does something to the bytes of a file.
func (n *lossyNode) change(e edit) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if errno := n.disk.working(); errno != fs.OK {
		return errno
	}
	n.edits = append(n.edits, e)
	n.live = e.apply(n.live)
	return fs.OK
}

// Write is write.
func (n *lossyNode) Write(_ context.Context, _ fs.FileHandle, data []byte, offset int64) (uint32, syscall.Errno) {
	return uint32(len(data)), n.change(edit{offset, append([]byte{}, data...)}) // the library uses data again
}

// Fsync is fsync of a file or a directory. What is written while it waits may be kept by it too.
func (n *lossyNode) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	l := n.disk
	l.mu.Lock()
	span := time.Duration(0)
	if l.syncMax > 0 {
		span = time.Duration(l.chance.Int64N(int64(l.syncMax)))
	}
	l.mu.Unlock()
	if span > 0 {
		wait(span)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if errno := l.working(); errno != fs.OK {
		return errno
	}
	l.syncs++
	n.sync()
	return fs.OK
}

// Getattr is stat.
func (n *lossyNode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	out.Mode, out.Nlink, out.Size, out.Blksize = n.mode(), 1, uint64(len(n.live)), 4096
	return n.disk.working()
}

// Setattr is truncate; modes, owners and times are not kept.
func (n *lossyNode) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, set := in.GetSize(); set {
		if errno := n.change(edit{offset: int64(size)}); errno != fs.OK {
			return errno
		}
	}
	return n.Getattr(ctx, f, out)
}

// Statfs tells of plenty of room.
func (n *lossyNode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	const blocks = 1 << 20
	*out = fuse.StatfsOut{Bsize: 4096, Frsize: 4096, Blocks: blocks, Bfree: blocks, Bavail: blocks, Files: blocks, Ffree: blocks, NameLen: 255}
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	return n.disk.working()
}

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/tasard/tasard/wal"
)

// CheckOwner returns an error if the user of this process must not use the data directory of another user. change is
// true for a caller that changes the directory. Root may read every directory but must not change it: new files would
// belong to root, and the owner's node could not start. A missing directory is accepted.
func CheckOwner(dir string, change bool) error { return checkOwner(dir, change, os.Geteuid()) }

func checkOwner(dir string, change bool, self int) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrPermission) {
		return errorf(BadFile, "Dir", "%s: permission denied; run this as the user of the node", dir)
	}
	if err != nil || !info.IsDir() {
		return nil // opening the directory reports it
	}
	owner := OwnerOf(info)
	if self != 0 {
		return checkAccess(dir, owner, self, change)
	}
	files, err := wal.Files(dir)
	if err != nil || !change {
		return nil
	}
	for _, file := range files { // the owner of a mounted directory may differ from the owner of its log
		if info, err := os.Stat(file); err == nil {
			owner = OwnerOf(info)
			break
		}
	}
	if owner == 0 {
		return nil
	}
	return errorf(BadFile, "Dir", "%[1]s belongs to user %[2]s, and files that root makes there keep its node from starting: run this as that user "+
		"(sudo -u '#%[3]d'), or let root run the node too: chown -R root %[1]s", dir, userName(owner), owner)
}

// checkAccess returns an error if a process of the user self can't read the files in dir or, with change, can't write
// them.
func checkAccess(dir string, owner, self int, change bool) error {
	const read, write, search = 4, 2, 1
	wantDir, wantFile := uint32(read|search), uint32(read)
	if change {
		wantDir, wantFile = wantDir|write, wantFile|write
	}
	denied := func(path string, want uint32) bool { return errors.Is(syscall.Access(path, want), fs.ErrPermission) }
	if owner != self && denied(dir, wantDir) {
		return errorf(BadFile, "Dir", "%[1]s belongs to user %[2]s: run this as the user of the node, or give it the directory as root: chown -R %[3]s %[1]s",
			dir, userName(owner), userName(self))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // opening the directory reports it
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || OwnerOf(info) == self || !denied(path, wantFile) {
			continue
		}
		return errorf(BadFile, "Dir", "%s belongs to user %s: run this as the user of the node, or give it the files as root: chown -R %s %s",
			path, userName(OwnerOf(info)), userName(self), dir)
	}
	return nil
}

// OwnerOf returns the number of the user that owns a file.
func OwnerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return os.Geteuid()
}

// userName returns a user's name, or the number if there is none.
func userName(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return u.Username
	}
	return fmt.Sprint(id)
}

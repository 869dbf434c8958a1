package wal

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// dropPageCache drops what the kernel remembers of a file that is synced.
func dropPageCache(f *os.File) error {
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("read %s from the disk again: %w", f.Name(), err)
	}
	return nil
}

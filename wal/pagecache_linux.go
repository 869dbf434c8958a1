package wal

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// dropPageCache makes the kernel read a synced file from the disk again.
func dropPageCache(f *os.File) error {
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("drop the page cache of %s: %w", f.Name(), err)
	}
	return nil
}

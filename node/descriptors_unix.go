//go:build unix

package node

import (
	"math"
	"syscall"
)

// descriptorsMax returns the process's limit of open files. The Go runtime has already raised it to the hard limit.
func descriptorsMax() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}

//go:build unix

package node

import (
	"math"
	"syscall"
)

// descriptorsMax is how many files and connections the process may have open. The runtime has raised it as far as it goes.
func descriptorsMax() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}

//go:build !unix

package node

import "math"

// descriptorsMax returns a number that never limits, because this system has no limit of open files.
func descriptorsMax() int { return math.MaxInt32 }

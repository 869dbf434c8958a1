//go:build !unix

package node

import "math"

// descriptorsMax returns a number that no node reaches, because this operating system has no limit of open files.
func descriptorsMax() int { return math.MaxInt32 }

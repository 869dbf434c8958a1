//go:build !unix

package node

import "math"

// descriptorsMax returns a number above any use, because this operating system does not limit open files.
func descriptorsMax() int { return math.MaxInt32 }

//go:build !unix

package node

import "math"

// descriptorsMax returns no limit.
func descriptorsMax() int { return math.MaxInt32 }

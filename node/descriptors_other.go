//go:build !unix

package node

import "math"

// descriptorsMax is not bounded here.
func descriptorsMax() int { return math.MaxInt32 }

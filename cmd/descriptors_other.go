//go:build !unix

package cmd

import "math"

// descriptorsMax is not bounded here.
func descriptorsMax() int { return math.MaxInt32 }

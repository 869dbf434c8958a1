//go:build !unix

package main

import "math"

// descriptorsMax is not bounded here.
func descriptorsMax() int { return math.MaxInt32 }

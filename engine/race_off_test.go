//go:build !race

package engine

// raceDetector says that bulk tests may run in full.
const raceDetector = false

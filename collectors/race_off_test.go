//go:build !race

package collectors

// RaceDetector makes bulk tests take a sample: each step costs about ten times as much.
const RaceDetector = false

//go:build !race

package source

// RaceDetector makes bulk tests take a sample: each step costs about ten times as much.
const RaceDetector = false

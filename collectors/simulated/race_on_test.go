//go:build race

package simulated

// raceDetector makes bulk tests take a sample: each step costs about ten times as much.
const raceDetector = true

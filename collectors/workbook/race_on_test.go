//go:build race

package workbook

// raceDetector makes bulk tests take a sample: each step costs about ten times as much.
const raceDetector = true

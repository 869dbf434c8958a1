//go:build !race

package actors

const raceDetector = false

//go:build !race

package collectors_test

const raceDetector = false

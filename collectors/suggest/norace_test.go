//go:build !race

package suggest_test

// raceEnabled says that the race detector is on.
const raceEnabled = false

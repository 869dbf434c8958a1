// Command whole runs, without the race detector, the tests that do less under it: those that reach, however far, a constant of a test file
// with the build constraint "race". All others have run whole already. It wants folders, looks into those below them too, and passes on
// what go test says.
//
//	go run ./.ci/whole .
package main

// Command mutants measures how much the tests of a package notice: it plants one small fault after the other (a mutant) and
// counts those that a test finds (killed).
//
//	go run ./.ci/mutants wal          all of a group: wal, backup, quota, auth, decimal, time
//	go run ./.ci/mutants -fresh wal   forget what was found before
//
// All mutants of a package that are expressions or statements go into one test binary, each behind a switch that an environment
// variable turns on: one build, then one run of a few tests for each mutant. Constants are built one by one, because the compiler
// wants to know them. Nothing is written into the tree: the go command gets the changed files by -overlay.
//
// Each test runs once without a mutant first: whatever fails then is no witness, what it passes through says which mutants it can
// find, and its time says which tests are asked first. A mutant counts as found when a test fails or does not end. Results are kept
// in .tools/mutants and taken up again as long as the files of the group are the same; only what was not found is tried again.
//
// Not planted: another number beside an error, a fault or false, which callers do not look at; modes of files.
//
// A mutant that no test can find, because it does the same, may stand in equivalent.txt with the reason. It is run like the others:
// an entry that is found after all, or that names no mutant, is an error.
//
//	main.go    the groups, the order of work
//	load.go    reads and type-checks a package
//	find.go    where mutants are, and which
//	values.go  constants and returned values
//	render.go  the source with all of them in it
//	build.go   test binaries
//	run.go     runs tests against a mutant
//	report.go  results kept, the table
package main

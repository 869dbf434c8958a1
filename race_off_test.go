//go:build !race

package main

// raceDetector makes tests of whole files take a sample or leave them to make whole: each step costs about ten times as much.
const raceDetector = false

// Command tasard is the Dominican exchange-rate node: it collects what
// Dominican institutions publish, keeps every current rate in memory, writes
// each fact to a log before it counts, and answers /v1 over HTTP.
//
// This package is wiring only, one file for each command. It is the one place
// where the real clock, chance, the environment and the process's exit code are
// touched; everything it calls can be called by a test.
package main

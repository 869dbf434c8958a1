// Command tasard is the Dominican exchange-rate node: it collects what
// Dominican institutions publish, keeps every current rate in memory, writes
// each fact to a log before it counts, and answers /v1 over HTTP.
//
// This file gives the process its signals and its exit code. The commands are
// in cmd.
package main

import (
	"os"

	"github.com/tasard/tasard/cmd"
)

func main() {
	os.Exit(cmd.Run(cmd.SignalContext()))
}

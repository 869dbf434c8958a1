// Command tasard is the Dominican exchange-rate node: it collects the rates that
// Dominican institutions publish, keeps current rates in memory, writes every
// change to a log before it takes effect, and serves /v1 over HTTP.
//
// This file only passes signals to the command and returns its exit code; the commands are in package cmd.
package main

import (
	"os"

	"github.com/tasard/tasard/cmd"
)

func main() {
	os.Exit(cmd.Run(cmd.SignalContext()))
}

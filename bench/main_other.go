//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: it pins processes to cores and reads their CPU time as Linux offers it; run it there")
	os.Exit(2)
}

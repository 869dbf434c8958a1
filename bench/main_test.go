package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// fasthttp starts one goroutine for the Date header that it never ends, and one for each server that ends some seconds after it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "bare" { // started by a test as the bench's own server
		main()
		return
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

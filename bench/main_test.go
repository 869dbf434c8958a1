package main

import (
	"testing"

	"go.uber.org/goleak"
)

// fasthttp starts one goroutine for the Date header that it never ends, and one for each server that ends some seconds after it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

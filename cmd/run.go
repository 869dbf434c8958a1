package cmd

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"math"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"go.uber.org/automaxprocs/maxprocs"

	"github.com/tasard/tasard/cmd/internal/process"
)

// Run runs the command that the process's arguments name, with the real environment, streams, clock and random
// numbers, and returns the exit code. When ctx ends, commands stop in order.
func Run(ctx context.Context) int {
	p := &commands{&process.Process{
		Name: os.Args[0], Args: os.Args[1:], Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Clock: time.Now, Seed: randomSeed, Random: rand.Reader,
	}}
	if os.Getenv("GOGC") == "" {
		p.OnReady = func() { debug.SetGCPercent(gcPercent) }
	}
	setProcessors()
	return p.run(ctx)
}

// SignalContext returns a context that ends with the first SIGINT or SIGTERM. The next signal then kills the
// process, in case the orderly stop hangs.
func SignalContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx
}

// setProcessors sets GOMAXPROCS to 1 where a control group limits the process to one processor. The runtime uses at
// least two threads by default, which then stall together when the quota is used up: under overload it served half
// the rate.
func setProcessors() {
	const runtimeLeast = 2
	if runtime.GOMAXPROCS(0) != runtimeLeast {
		return
	}
	whole := func(limit float64) int { return int(math.Ceil(limit)) }
	_, _ = maxprocs.Set(maxprocs.RoundQuotaFunc(whole)) // without a readable limit the runtime's choice stays
}

// gcPercent is the GOGC value of a node that has read its log. Requests make no garbage, so a low value costs little
// CPU time and saves memory when thousands of clients are connected.
const gcPercent = 30

// randomSeed returns a seed from the system's random source, which does not fail.
func randomSeed() uint64 {
	var bytes [8]byte
	_, _ = rand.Read(bytes[:])
	return binary.LittleEndian.Uint64(bytes[:])
}

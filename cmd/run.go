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

// setProcessors sets GOMAXPROCS to 1 if a control group limits the process to one processor. By default the runtime
// runs at least two threads. Both stall when the CPU quota is used up, and the node served only half the requests under
// overload.
func setProcessors() {
	const runtimeMin = 2
	if runtime.GOMAXPROCS(0) != runtimeMin {
		return
	}
	roundUp := func(limit float64) int { return int(math.Ceil(limit)) }
	_, _ = maxprocs.Set(maxprocs.RoundQuotaFunc(roundUp)) // on failure the runtime's value stays
}

// gcPercent is the GOGC value of a node that has read its log. Requests do not allocate, so a low value costs little
// CPU time, and it saves memory when thousands of clients are connected.
const gcPercent = 30

// randomSeed returns a seed from the system's random source, which does not fail.
func randomSeed() uint64 {
	var bytes [8]byte
	_, _ = rand.Read(bytes[:])
	return binary.LittleEndian.Uint64(bytes[:])
}

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

// Run runs the command that the arguments of the process name, and returns its exit code. The command uses the real
// environment, streams, clock and random numbers. When ctx ends, the command stops in an orderly way.
func Run(ctx context.Context) int {
	p := &commands{&process.Process{
		Name: os.Args[0], Args: os.Args[1:], Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Clock: time.Now, Seed: randomSeed, Random: rand.Reader,
	}}
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		ballast := make([]byte, ballastBytes)
		defer runtime.KeepAlive(ballast)
		p.OnReady = func() { debug.SetGCPercent(gcPercent) }
	}
	setProcessors()
	return p.run(ctx)
}

// SignalContext returns a context that ends with the first SIGINT or SIGTERM. A second signal kills the process, in
// case the orderly stop hangs.
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

// setProcessors sets GOMAXPROCS to 1 if a control group limits the process to one processor. By default the Go
// runtime uses at least two threads. When the CPU quota is used up, both threads stall: under overload, a node with
// two threads served only half as many requests.
func setProcessors() {
	const runtimeMin = 2
	if runtime.GOMAXPROCS(0) != runtimeMin {
		return
	}
	roundUp := func(limit float64) int { return int(math.Ceil(limit)) }
	_, _ = maxprocs.Set(maxprocs.RoundQuotaFunc(roundUp)) // on an error GOMAXPROCS keeps its value
}

// gcPercent is the GOGC value of a node after it has read its log. A low value saves memory when thousands of clients
// are connected. It costs little CPU time, because requests do not allocate.
const gcPercent = 30

// ballastBytes is the size of an unused slice. It counts as live memory, so that even a small heap is collected only
// after gcPercent of ballastBytes more, 19 MiB. It is never written, so it takes no physical memory. Without it, an
// import into a node with a few accounts causes several collections, and on a single processor reads wait up to a
// millisecond for each of them.
const ballastBytes = 64 << 20

// randomSeed returns an unpredictable seed.
func randomSeed() uint64 {
	var bytes [8]byte
	_, _ = rand.Read(bytes[:]) // never fails
	return binary.LittleEndian.Uint64(bytes[:])
}

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

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/automaxprocs/maxprocs"

	"github.com/tasard/tasard/cmd/internal/process"
)

// Run runs the command named in the process's arguments, and returns its exit code. The command uses the real
// environment, streams, clock and random numbers. When ctx ends, it stops in an orderly way.
func Run(ctx context.Context) int {
	p := &commands{&process.Process{
		Name: os.Args[0], Args: os.Args[1:], Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Clock: time.Now, Seed: randomSeed, Random: rand.Reader,
	}}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit(0))
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

// memoryLimit returns the value for GOMEMLIMIT with a heap of this size. Near the limit the heap is collected more
// often. Without the limit the garbage of 10,000 slow clients would double their memory (goal: 300 MiB). A large node's
// data may fill half of the limit; otherwise the node would only collect garbage. A tenth of the control group's memory
// stays free, because the kernel kills a process that exceeds it.
func memoryLimit(heapBytes uint64) int64 {
	limit := max(272<<20, 2*heapBytes)
	if allowed, err := memlimit.FromCgroup(); err == nil { // an error means that nothing limits the process
		limit = min(limit, allowed-allowed/10)
	}
	return int64(limit) //nolint:gosec // a heap is smaller
}

// raiseMemoryLimit makes room for the accounts and rates read by the node.
func (p *commands) raiseMemoryLimit() {
	if p.Getenv("GOMEMLIMIT") != "" {
		return
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetMemoryLimit(memoryLimit(m.HeapAlloc))
}

// randomSeed returns an unpredictable seed.
func randomSeed() uint64 {
	var bytes [8]byte
	_, _ = rand.Read(bytes[:]) // never fails
	return binary.LittleEndian.Uint64(bytes[:])
}

package cmd

import (
	"context"
	"crypto/rand"
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
		Clock: time.Now, Random: rand.Reader,
	}}
	setMemoryLimit(os.Getenv("GOMEMLIMIT"), 0)
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

// outsideHeap is what a process needs besides the memory that GOMEMLIMIT counts: the program's own pages, the kernel's
// buffers of a thousand connections, and what the heap grows by before a collection ends.
const outsideHeap = 48 << 20

// memoryLimit returns the value for GOMEMLIMIT with a heap of this size, in a control group that allows so many bytes
// (0: any number). Near the limit the heap is collected more often. Without the limit the garbage of 10,000 slow
// clients would double their memory (goal: 300 MiB). A large node's data may fill half of the limit; otherwise the node
// would only collect garbage. The kernel kills a process that exceeds its control group, so a part of it stays free.
func memoryLimit(heapBytes, allowed uint64) int64 {
	limit := max(272<<20, 2*heapBytes)
	if allowed > 0 {
		limit = min(limit, allowed-min(allowed/2, max(allowed/10, outsideHeap)))
	}
	return int64(limit) //nolint:gosec // a heap is smaller
}

// setMemoryLimit sets GOMEMLIMIT for a heap of this size, unless the environment has set it.
func setMemoryLimit(environment string, heapBytes uint64) {
	if environment != "" {
		return
	}
	allowed, err := memlimit.FromCgroup()
	if err != nil { // nothing limits the process
		allowed = 0
	}
	debug.SetMemoryLimit(memoryLimit(heapBytes, allowed))
}

// raiseMemoryLimit makes room for the accounts and rates read by the node.
func (p *commands) raiseMemoryLimit() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	setMemoryLimit(p.Getenv("GOMEMLIMIT"), m.HeapAlloc)
}

package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// main gives the command the real world: arguments, environment, streams, clock, chance and signals.
func main() {
	p := &process{
		name: os.Args[0], args: os.Args[1:], environ: os.Environ(),
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		clock: time.Now, seed: randomSeed, random: rand.Reader,
	}
	os.Exit(p.run(untilSignal()))
}

// untilSignal is a context that ends with the first SIGINT or SIGTERM. When it has ended, the next signal kills, in case
// the orderly stop hangs.
func untilSignal() context.Context {
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

// randomSeed is taken from the system's source of chance, which does not fail.
func randomSeed() uint64 {
	var bytes [8]byte
	_, _ = rand.Read(bytes[:])
	return binary.LittleEndian.Uint64(bytes[:])
}

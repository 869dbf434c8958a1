package cluster

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs a node when it was started as one, else the tests; afterwards no goroutine may be left, of the server neither.
func TestMain(m *testing.M) {
	if part := os.Getenv(childNode); part != "" {
		os.Exit(child(part))
	}
	goleak.VerifyTestMain(m)
}

// contextOfChild is that of a process that lives until it is told to end.
func contextOfChild() context.Context { return context.Background() }

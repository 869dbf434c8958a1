package actors

import (
	"os"
	"testing"

	cmap "github.com/orcaman/concurrent-map"
	"go.uber.org/goleak"
)

// TestMain runs a crash child when it was started as one, else the tests; afterwards no goroutine may be
// left.
func TestMain(m *testing.M) {
	// Each actor system makes 1,024 maps of that many maps, half the time of a node's start, and tests start tens of thousands of nodes.
	// The program leaves it alone: the number is everybody's who has this library, and may not change while a map is in use.
	cmap.SHARD_COUNT = 1
	if dir := os.Getenv(crashChildDir); dir != "" {
		os.Exit(crashChild(dir))
	}
	if dir := os.Getenv(tenantChildDir); dir != "" {
		os.Exit(tenantChild(dir))
	}
	goleak.VerifyTestMain(m)
}

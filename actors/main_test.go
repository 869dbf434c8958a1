package actors

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs a crash child when it was started as one, else the tests; afterwards no goroutine may be
// left.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashChildDir); dir != "" {
		os.Exit(crashChild(dir))
	}
	if dir := os.Getenv(tenantChildDir); dir != "" {
		os.Exit(tenantChild(dir))
	}
	goleak.VerifyTestMain(m)
}

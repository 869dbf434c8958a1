package mailbox

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails when a goroutine is left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

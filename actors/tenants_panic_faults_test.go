//go:build faults

package actors

import "testing"

// TestFaultsQ5_PanicsOverAnyLetter is TestQ5_PanicsOverAnyLetter with 10,000 panics, of which 2,000 stop the node.
func TestFaultsQ5_PanicsOverAnyLetter(t *testing.T) {
	t.Parallel()
	checkPanics(t, 8000, 2000)
	t.Run("control", TestQ5_Control_EmptyRestart)
}

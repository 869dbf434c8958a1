//go:build faults

package httpapi

import "testing"

// TestFaultsS3_S4_Timing is the timing test with the number of samples that reliability S3 asks for.
func TestFaultsS3_S4_Timing(t *testing.T) { playTiming(t, 100_000, 400_000) }

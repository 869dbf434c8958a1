package counters

import (
	"testing"

	"github.com/tasard/tasard/engine"
)

// TestRefused_ByQuota: refusals for a used-up quota are counted apart, and no others.
func TestRefused_ByQuota(t *testing.T) {
	c := New(nil, nil)
	for _, code := range []engine.Code{"", engine.CodeRateLimited, engine.CodeRateLimited, engine.CodeQuotaExceeded, engine.CodeInvalidKey, engine.CodeReadOnly} {
		c.Admission(code == engine.CodeRateLimited, code)
	}
	if minute, day := c.Refused(); minute != 2 || day != 1 {
		t.Errorf("%d over the quota of a minute and %d over that of a day, want 2 and 1", minute, day)
	}
}

// TestLabels_Fixed: what clients and pages choose becomes one of a few labels.
func TestLabels_Fixed(t *testing.T) {
	for _, odd := range []int{-1, 0, 99, 299, 600, 1 << 40} {
		if label := statusLabel(odd); label != Other {
			t.Errorf("status %d is counted as %s", odd, label)
		}
	}
	for _, odd := range []string{"", "get", "PATCH", "BREW"} {
		if label := MethodLabel([]byte(odd)); label != Other {
			t.Errorf("method %q is counted as %s", odd, label)
		}
	}
}

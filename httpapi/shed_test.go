package httpapi

import (
	"testing"

	"github.com/tasard/tasard/httpapi/conn"
)

// TestO2_Priorities: what a request is counted as before anything is done for it.
func TestO2_Priorities(t *testing.T) {
	for _, one := range []struct {
		target string
		keyed  bool
		want   conn.Priority
	}{
		{"/livez", false, conn.Health},
		{"/readyz?x=1", false, conn.Health},
		{"/healthzz", false, conn.Anonymous},
		{"/v1/rates", true, conn.Keyed},
		{"/v1/rates", false, conn.Anonymous},
		{"/v1/convert?amount=1", false, conn.AnonymousCostly},
		{"/v1/rates/history", true, conn.KeyedCostly},
		{"", false, conn.Anonymous},
	} {
		if got := priorityOf([]byte(one.target), one.keyed); got != one.want {
			t.Errorf("%q, with a key %t: priority %d, want %d", one.target, one.keyed, got, one.want)
		}
	}
}

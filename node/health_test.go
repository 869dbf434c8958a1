package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// The log says how many requests were refused in a minute and why, once, and nothing if there were none.
func TestRefusals(t *testing.T) {
	var out bytes.Buffer
	var r refusals
	for _, step := range []struct {
		minute, day uint64
		says        string
	}{{0, 0, ""}, {3, 1, "overQuotaOfMinute=3 overQuotaOfDay=1"}, {3, 1, ""}, {3, 5, "overQuotaOfMinute=0 overQuotaOfDay=4"}} {
		out.Reset()
		r.log(slog.New(slog.NewTextHandler(&out, nil)), func() (minute, day uint64) { return step.minute, step.day })
		if got := out.String(); !strings.Contains(got, step.says) || got != "" && step.says == "" {
			t.Errorf("%+v: the log says %q", step, got)
		}
	}
}

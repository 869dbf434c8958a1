package engine

import (
	"testing"
	"time"
)

func TestDatePrecision(t *testing.T) {
	published := time.Unix(1_780_000_000, 0)
	for _, c := range []struct {
		effective Date
		published time.Time
		want      DatePrecision
	}{
		{0, time.Time{}, PrecisionUnknown}, {1, time.Time{}, PrecisionDay}, {0, published, PrecisionDatetime}, {1, published, PrecisionDatetime},
	} {
		if got := precisionOf(c.effective, c.published); got != c.want {
			t.Errorf("date %d, published %v: %s, want %s", c.effective, c.published, got, c.want)
		}
	}
}

package fields

import (
	"math"
	"strconv"
	"testing"
)

func TestAppendNumber(t *testing.T) {
	numbers := []int64{0, 1, 9, 10, 11, 99, 100, 101, 110, 999, 1000, 1005, 1_768_478_400, math.MaxInt64}
	for n := int64(1); n > 0; n *= 10 {
		numbers = append(numbers, n, n-1)
	}
	for _, n := range numbers {
		if got := string(AppendNumber([]byte("a"), n)); got != "a"+strconv.FormatInt(n, 10) {
			t.Errorf("%d is %s", n, got)
		}
	}
}

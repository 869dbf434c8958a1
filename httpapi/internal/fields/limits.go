package fields

import "time"

// AppendWindow appends the item for a quota window in RateLimit or RateLimit-Policy. It has the name of the window and
// two parameters, such as "day";q=1000;w=86400.
func AppendWindow(dst []byte, window, first string, a int64, second string, b int64) []byte {
	dst = append(append(append(append(dst, window...), ';'), first...), '=')
	dst = append(append(append(AppendNumber(dst, a), ';'), second...), '=')
	return AppendNumber(dst, b)
}

// AppendNumber appends a number that must not be negative. It takes half the time of strconv.AppendInt, and each
// response has seven numbers.
func AppendNumber(dst []byte, n int64) []byte {
	var digits [20]byte
	first := len(digits) - 1
	for ; n >= 10; n /= 10 {
		digits[first] = byte('0' + n%10)
		first--
	}
	digits[first] = byte('0' + n)
	return append(dst, digits[first:]...)
}

// EpochSeconds returns a Unix time in seconds, rounded up.
func EpochSeconds(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

// SecondsUntil returns the seconds from now (in Unix nanoseconds) to t, rounded up like Retry-After. It returns 0 if t
// is in the past.
func SecondsUntil(t time.Time, now int64) int64 {
	const second = int64(time.Second)
	return max(0, (t.UnixNano()-now+second-1)/second)
}

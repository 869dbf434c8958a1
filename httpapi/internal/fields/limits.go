package fields

import "time"

// AppendWindow appends the item for a quota window in RateLimit or RateLimit-Policy. It has the name of the window and
// two parameters, such as "day";q=1000;w=86400.
func AppendWindow(dst []byte, window, first string, a int64, second string, b int64) []byte {
	dst = append(append(append(append(dst, window...), ';'), first...), '=')
	dst = append(append(append(AppendNumber(dst, a), ';'), second...), '=')
	return AppendNumber(dst, b)
}

// digitPairs has the two digits of each number below 100.
const digitPairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263" +
	"646566676869707172737475767778798081828384858687888990919293949596979899"

// AppendNumber appends a number that must not be negative. It takes half the time of strconv.AppendInt, and each
// response has seven numbers.
func AppendNumber(dst []byte, n int64) []byte {
	var digits [20]byte
	first, rest := len(digits), uint64(n) //nolint:gosec // G115: n is not negative
	for ; rest >= 10; rest /= 100 {
		pair := rest % 100 * 2
		first -= 2
		digits[first], digits[first+1] = digitPairs[pair], digitPairs[pair+1]
	}
	if rest > 0 || first == len(digits) {
		first--
		digits[first] = byte('0' + rest)
	}
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

package fields

import "time"

// digitPairs has the two digits of each number below 100.
const digitPairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263" +
	"646566676869707172737475767778798081828384858687888990919293949596979899"

// AppendNumber appends a number that must not be negative. It takes half the time of strconv.AppendInt, and each
// response has several numbers.
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

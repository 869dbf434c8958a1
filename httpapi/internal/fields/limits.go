package fields

import "time"

// AppendWindow appends an item with two whole parameters: "day";q=1000;w=86400.
func AppendWindow(dst []byte, window, first string, a int64, second string, b int64) []byte {
	dst = append(append(append(append(dst, window...), ';'), first...), '=')
	dst = append(append(append(AppendNumber(dst, a), ';'), second...), '=')
	return AppendNumber(dst, b)
}

// AppendNumber is strconv.AppendInt for a number that is not negative, at half of its cost: each answer has seven
// of them.
func AppendNumber(dst []byte, n int64) []byte {
	var digits [20]byte
	at := len(digits) - 1
	for ; n >= 10; n /= 10 {
		digits[at] = byte('0' + n%10)
		at--
	}
	digits[at] = byte('0' + n)
	return append(dst, digits[at:]...)
}

// EpochSeconds is an instant in whole seconds since 1970, rounded up.
func EpochSeconds(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

// SecondsUntil is how many seconds an instant is after now, in nanoseconds: rounded up like Retry-After, so that
// the two agree; 0 for what is past.
func SecondsUntil(t time.Time, now int64) int64 {
	const second = int64(time.Second)
	return max(0, (t.UnixNano()-now+second-1)/second)
}

package client

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ResponseInfo is what stands around an answer.
type ResponseInfo struct {
	Status    int
	RequestID string // to be kept for reports (Q16)
	ETag      string
	// MaxAge is how long the answer may be kept (Q13).
	MaxAge time.Duration
	// Limits is where the caller stands, nil when the node counts nobody.
	Limits *Limits
	// Sunset is when anonymous access ends, zero when no end is announced (K7).
	Sunset time.Time
}

// Limits is the tighter of the caller's two windows (L3); Client.Usage tells both.
type Limits struct {
	Limit, Remaining int
	Reset            time.Time // when the window is whole again
}

// readResponseInfo reads what it can: headers are an addition, and a proxy may have taken some away.
func readResponseInfo(response *http.Response) *ResponseInfo {
	header := response.Header
	head := &ResponseInfo{Status: response.StatusCode, RequestID: header.Get("X-Request-Id"), ETag: header.Get("ETag"), Limits: readLimits(header)}
	for directive := range strings.SplitSeq(header.Get("Cache-Control"), ",") {
		if text, found := strings.CutPrefix(strings.TrimSpace(directive), "max-age="); found {
			head.MaxAge = parseSeconds(text)
		}
	}
	if at, err := http.ParseTime(header.Get("Sunset")); err == nil {
		head.Sunset = at.UTC()
	}
	return head
}

// readLimits is nil unless all three are there (L4: the reset is in seconds since 1970).
func readLimits(header http.Header) *Limits {
	limit, limitErr := strconv.Atoi(header.Get("X-RateLimit-Limit"))
	left, leftErr := strconv.Atoi(header.Get("X-RateLimit-Remaining"))
	reset, resetErr := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
	if limitErr != nil || leftErr != nil || resetErr != nil {
		return nil
	}
	return &Limits{limit, left, time.Unix(reset, 0).UTC()}
}

// secondsMax is the longest time that a header can say: a day and a bit. It keeps durations from overflowing.
const secondsMax = 100_000

// parseSeconds is a whole number of seconds, 0 for what is none.
func parseSeconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, secondsMax)) * time.Second
}

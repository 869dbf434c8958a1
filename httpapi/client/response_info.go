package client

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ResponseInfo has the headers of an answer.
type ResponseInfo struct {
	Status    int
	RequestID string // identifies the request in the node's log
	ETag      string
	// MaxAge is how long the answer may be kept.
	MaxAge time.Duration
	// Limits is nil if the node enforces none.
	Limits *Limits
	// Sunset is when anonymous access ends. Zero = no date is announced.
	Sunset time.Time
}

// Limits is the tighter of the two windows of the caller. Client.Usage returns both.
type Limits struct {
	Limit, Remaining int
	Reset            time.Time // when the window is reset
}

// readResponseInfo reads the headers. A missing one, which a proxy may have removed, leaves its field zero.
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

// readLimits returns nil unless all three headers are there. The reset is in Unix seconds.
func readLimits(header http.Header) *Limits {
	limit, limitErr := strconv.Atoi(header.Get("X-RateLimit-Limit"))
	left, leftErr := strconv.Atoi(header.Get("X-RateLimit-Remaining"))
	reset, resetErr := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
	if limitErr != nil || leftErr != nil || resetErr != nil {
		return nil
	}
	return &Limits{limit, left, time.Unix(reset, 0).UTC()}
}

// secondsMax bounds durations in headers, so that they don't overflow. It is more than a day.
const secondsMax = 100_000

// parseSeconds parses whole seconds; anything else is 0.
func parseSeconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, secondsMax)) * time.Second
}

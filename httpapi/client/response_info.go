package client

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ResponseInfo has the headers of a response.
type ResponseInfo struct {
	Status    int
	RequestID string // identifies the request in the node's log
	ETag      string
	// MaxAge is how long the response may be cached.
	MaxAge time.Duration
	// Limits is nil if the node does not limit requests.
	Limits *Limits
	// Sunset is when anonymous access ends. The zero time means that no date is announced.
	Sunset time.Time
}

// infoKey is the key of the context value with the *ResponseInfo to fill in.
type infoKey struct{}

// WithResponse returns a context for one request. info is filled in when a response arrives, even one with an
// error status. If there are several responses, after retries or for an iterator, info describes the last one.
func WithResponse(ctx context.Context, info *ResponseInfo) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// Limits is the tighter of the two quota windows of the caller, a day and a minute. Client.Usage returns both.
type Limits struct {
	Limit, Remaining int
	Reset            time.Time // when the window is reset
}

// readResponseInfo reads the headers. The field for a missing header is zero, because a proxy may remove headers.
func readResponseInfo(response *http.Response) *ResponseInfo {
	header := response.Header
	info := &ResponseInfo{Status: response.StatusCode, RequestID: header.Get("X-Request-Id"), ETag: header.Get("ETag"), Limits: readLimits(header)}
	for directive := range strings.SplitSeq(header.Get("Cache-Control"), ",") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(directive), "max-age="); ok {
			info.MaxAge = parseSeconds(text)
		}
	}
	if sunset, err := http.ParseTime(header.Get("Sunset")); err == nil {
		info.Sunset = sunset.UTC()
	}
	return info
}

// readLimits reads the three X-RateLimit headers. It returns nil if one of them is missing or invalid.
func readLimits(header http.Header) *Limits {
	limit, limitErr := strconv.Atoi(header.Get("X-RateLimit-Limit"))
	remaining, remainingErr := strconv.Atoi(header.Get("X-RateLimit-Remaining"))
	reset, resetErr := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
	if limitErr != nil || remainingErr != nil || resetErr != nil {
		return nil
	}
	return &Limits{limit, remaining, time.Unix(reset, 0).UTC()}
}

// secondsMax is the largest result of parseSeconds: more than a day, and far from an overflow of time.Duration.
const secondsMax = 100_000

// parseSeconds parses a whole number of seconds. It returns 0 for any other text.
func parseSeconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, secondsMax)) * time.Second
}

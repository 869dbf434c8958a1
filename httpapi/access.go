package httpapi

import (
	"time"
)

// AccessRecord describes an answered request, for an access log. It contains no path, query, header, key or full client
// address.
type AccessRecord struct {
	RequestID string
	At        time.Time // when the request was complete
	Route     string    // as in the metrics
	Method    string    // as in the metrics
	Status    int
	Duration  time.Duration // from At until the response was ready to be sent
	Bytes     int           // length of the response body, compressed if it is sent compressed
	Keyed     bool          // Config.Admitter found an account for the API key of the request
	Network   string        // of the client: the first 24 bits of an IPv4 address, or 48 bits of an IPv6 address
}

package source

import "fmt"

// FailureKind classifies failures.
type FailureKind string

// The kinds of failures.
const (
	Network      FailureKind = "network" // no connection, or a lost connection
	Timeout      FailureKind = "timeout"
	TLS          FailureKind = "tls"           // the certificate of the server can't be verified, or TLS failed otherwise
	HTTPStatus   FailureKind = "http_status"   // the status is not 200
	Blocked      FailureKind = "blocked"       // a bot protection or robots.txt forbids the request, or a secret is missing or refused
	WrongContent FailureKind = "wrong_content" // not the expected kind of document, or damaged, or too large
	Empty        FailureKind = "empty"         // a valid document without prices
	Layout       FailureKind = "layout"        // prices are not where the source definition says
	Value        FailureKind = "value"         // the texts where prices should be are not prices
	Implausible  FailureKind = "implausible"   // the engine rejected all quotes as implausible
	Internal     FailureKind = "internal"      // a fault of this program, such as a panic or a log that can't be written
)

// Failure is the reason why a source could not be read.
type Failure struct {
	Kind   FailureKind
	Page   string // name of the page; "" = the only one
	Status int    // HTTP status of the response; 0 = none
	Detail string // what was expected, what was found, and where
	Cause  error
}

func (f *Failure) Error() string {
	page := ""
	if f.Page != "" {
		page = f.Page + ": "
	}
	return fmt.Sprintf("%s: %s%s", f.Kind, page, f.Detail)
}

func (f *Failure) Unwrap() error { return f.Cause }

// Failf returns a failure with a formatted detail.
func Failf(kind FailureKind, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

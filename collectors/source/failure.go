package source

import "fmt"

// FailureKind is how a source failed.
type FailureKind string

// The kinds of failures: first those of fetching, then those of parsing.
const (
	Network      FailureKind = "network" // no connection, or it was lost
	Timeout      FailureKind = "timeout"
	TLS          FailureKind = "tls"           // a certificate can't be verified
	HTTPStatus   FailureKind = "http_status"   // a response without status 200
	Blocked      FailureKind = "blocked"       // a bot wall, or robots.txt
	WrongContent FailureKind = "wrong_content" // another kind of document than expected, or a damaged or too large one
	Empty        FailureKind = "empty"         // a valid document without values
	Layout       FailureKind = "layout"        // values are not where they should be
	Value        FailureKind = "value"         // a value is not a rate
	Implausible  FailureKind = "implausible"   // all values were refused by the rules
	Internal     FailureKind = "internal"      // a fault of this program: a panic, a log that can't be written
)

// Failure is why a source could not be read.
type Failure struct {
	Kind   FailureKind
	Page   string // name of the page, "" = the only one
	Detail string // what was expected, what was found, and where
	Cause  error
}

// Error returns the kind, the page and the detail.
func (f *Failure) Error() string {
	page := ""
	if f.Page != "" {
		page = f.Page + ": "
	}
	return fmt.Sprintf("%s: %s%s", f.Kind, page, f.Detail)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Failf returns a failure with a formatted detail.
func Failf(kind FailureKind, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

package source

import "fmt"

// FailureKind is how a source failed.
type FailureKind string

// The closed list of kinds. The first four come from fetching, the rest from reading, but for the last.
const (
	Network      FailureKind = "network"       // no connection, or it broke off
	Timeout      FailureKind = "timeout"       // too slow
	TLS          FailureKind = "tls"           // a certificate that can't be verified
	HTTPStatus   FailureKind = "http_status"   // an answer, but not with 200
	Blocked      FailureKind = "blocked"       // a bot wall, or robots.txt: nobody goes around it
	WrongContent FailureKind = "wrong_content" // another kind of document than expected, or a damaged or too large one
	Empty        FailureKind = "empty"         // a good answer with nothing in it
	Layout       FailureKind = "layout"        // nothing stands where it should
	Value        FailureKind = "value"         // something stands there, but no rate
	Implausible  FailureKind = "implausible"   // read well, and all of it refused by the rules (I3)
	Internal     FailureKind = "internal"      // our own fault: a panic, a log that can't be written
)

// Failure is why a source gave nothing.
type Failure struct {
	Kind   FailureKind
	Page   string // name of the page, "" = the only one
	Detail string // what was expected, what was found, with the place
	Cause  error
}

// Error is the kind with what was found.
func (f *Failure) Error() string {
	where := ""
	if f.Page != "" {
		where = f.Page + ": "
	}
	return fmt.Sprintf("%s: %s%s", f.Kind, where, f.Detail)
}

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Failf makes a failure.
func Failf(kind FailureKind, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

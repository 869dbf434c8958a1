// Package encode appends JSON to a slice, without reflection and without allocations. It does not escape HTML. The
// functions add the commas between fields and elements; the caller adds brackets and braces:
//
//	dst = encode.Field(append(dst, '{'), "code", "USD")
//	dst = append(encode.Int(dst, "quoteCount", 3), '}')
//
// It also has the statuses of the codes of API errors.
package encode

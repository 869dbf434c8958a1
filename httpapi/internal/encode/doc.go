// Package encode appends JSON to a slice: without reflection, so that an answer costs no allocation, and without
// HTML escaping. An object or an array is begun and ended by its caller; the functions put the commas in
// between:
//
//	dst = encode.Field(append(dst, '{'), "code", "USD")
//	dst = append(encode.Int(dst, "quoteCount", 3), '}')
package encode

// Package values parses texts written for people: prices, dates, and labels such as the name of a bank.
//
//	price, err := values.ParsePrice("RD$ 56,60", values.AnyMark, 4)           // "56.60"
//	day, instant, err := values.ParseDate("2026-09-17", values.ISODate)
//	same := values.NormaliseLabel("Dólar  (US)*") == "dolar (us)"
//
// # Promises
//
//   - A price is parsed only if it is unambiguous, and a date only in the given form. No value is guessed, rescaled or
//     rounded; only the binary rounding errors of numbers in JSON and workbooks are removed (ParseNumber).
//   - There are no floating-point numbers: a price is decimal text with the digits of the source.
//   - Limits of size are constants in the file that checks them. All functions are safe for concurrent use.
package values

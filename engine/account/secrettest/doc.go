// Package secrettest searches texts for secrets. Tests use it to show that logs, files and responses contain no key, no
// login code and no password.
//
// A careless line of code may write a secret in another form, for example as part of a base64 text. Therefore Leaks
// searches for several forms of each secret:
//
//	raw, reversed, hexadecimal in both cases, escaped for URLs, base64 and base64 for URLs at any position
package secrettest

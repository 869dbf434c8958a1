// Package account serves the pages on which people create keys: sign-in by e-mail and code, keys, usage. It calls the
// account.Service of engine/account, like the operations under /v1/account. All pages work without JavaScript.
//
//	GET  /account                    sign-in; with a session keys and usage
//	POST /account/codes              requests a code                       → /account/code
//	GET  /account/code               the form for the code
//	POST /account/sessions           opens a session                       → /account
//	POST /account/keys               creates a key, and shows it only here
//	POST /account/keys/{id}/revoke   revokes a key                         → /account
//	POST /account/signout            closes the session                    → /account
//
// The same paths exist under /en. A form ends with a redirect (303), except that a new key is shown by the answer
// itself. A GET of the path of a form redirects to /account. An error shows the form again with its input: 403 for an
// invalid form, 409, 422 for invalid input, 429 and 503 with Retry-After. Wrong and expired codes, known and unknown
// e-mail addresses give the same page.
//
// # Secrets
//
// A key is only in the answer that creates it (no-store). A session is in a cookie: HttpOnly, SameSite=Strict, with
// the path of these pages, and with https Secure and the prefix __Secure-. A code is only in the body of its form.
//
// A form is accepted if it is not cross-origin, its cookie was sent, and its token is valid
// (form_tokens.go). The form that creates a key works once. Answers may be compressed: no other site can request these
// pages with cookies, and tokens differ each time.
//
// # Where to start reading
//
//	account.go      Config and routes; context.go: what happens to every request
//	login.go        sign-in; keys.go: keys and usage
//	form_errors.go  errors next to a form; form_tokens.go, cookies.go: protection
//	files           texts, style and script
package account

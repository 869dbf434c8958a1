// Package account serves the pages on which people create keys: sign-in by e-mail and code, keys, usage. Like the
// operations under /v1/account, it calls account.Service of engine/account. All pages work without JavaScript.
//
//	GET  /account                    sign-in; with a session: keys and usage
//	POST /account/codes              requests a code                       → /account/code
//	GET  /account/code               the form for the code
//	POST /account/sessions           opens a session                       → /account
//	POST /account/keys               creates a key and shows it; no other page shows it
//	POST /account/keys/{id}/revoke   revokes a key                         → /account
//	POST /account/signout            closes the session                    → /account
//
// The same paths exist under /en. The response to a form is a redirect (303). Only POST /account/keys responds with a
// page, which shows the new key. A GET of the path of a form redirects to /account. After an error the form is shown
// again with its input: 403 for an invalid form, 409, 422 for invalid input, 429 and 503 with Retry-After. Wrong and
// expired codes give the same page, and so do known and unknown e-mail addresses.
//
// # Secrets
//
// A key is only in the response that creates it, with no-store. The session is in a cookie: HttpOnly, SameSite=Strict,
// with the path of these pages, and with https also Secure and the prefix __Secure-. A code is only in the body of a
// form.
//
// A form is accepted if it is not cross-origin, its cookie was sent, and its token is valid (form_tokens.go). The form
// that creates a key works once. Responses may be compressed (BREACH is not possible), because no other site can
// request these pages with cookies, and tokens differ each time.
//
// # Where to start reading
//
//	account.go      Config and routes; context.go: cookies and form of a request
//	login.go        sign-in; keys.go: keys and usage
//	form_errors.go  errors of forms; form_tokens.go, cookies.go: protection
//	files           texts, style and script
package account

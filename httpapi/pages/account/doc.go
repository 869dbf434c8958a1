// Package account serves the pages for creating API keys: sign-in by e-mail and login code, keys, usage. Like the
// operations under /v1/account, it calls account.Service of engine/account. All pages work without JavaScript.
//
//	GET  /account                    sign-in; with a session: keys and usage
//	POST /account/codes              requests a login code                 → /account/code
//	GET  /account/code               the form for the login code
//	POST /account/sessions           opens a session                       → /account
//	POST /account/keys               creates a key and shows it; no other page shows it
//	POST /account/keys/{id}/revoke   revokes a key                         → /account
//	POST /account/signout            closes the session                    → /account
//
// The same paths exist under /en. The arrows are redirects (303) after success. A GET of a path that takes a POST
// redirects to /account. After an error the form is shown again with the user's input. The status is 403 without a
// session, 409 at the limit of keys, 422 for invalid input, and 429 or 503 with Retry-After. The response
// does not tell a wrong login code from an expired one, or a known e-mail address from an unknown one.
//
// # Secrets
//
// An API key appears only in the response to its creation, with Cache-Control: no-store. The session token is in a
// cookie with HttpOnly, SameSite=Strict and the path of these pages. With https the cookie also has Secure, and the
// name begins with __Secure-. A login code appears only in the body of a form.
//
// A form is accepted only if the request is not cross-origin (http.CrossOriginProtection). Responses may be compressed:
// the BREACH attack is not possible, because no other site can request these pages with cookies.
//
// # Where to start reading
//
//	account.go  Config and routes; forms and cookies of a request, and errors of forms; sign-in
//	keys.go     keys and usage
//	files       texts, style and script
package account

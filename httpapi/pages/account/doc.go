// Package account is the way from an e-mail address to a key, as pages: an address, a code by letter, keys and what is used of the
// quota. It asks the Service of engine/account, as the operations under /v1/account do, and has no rule of its own. Everything works without
// JavaScript, by forms.
//
// # Pages
//
//	GET  /account                    the address's form; with a session the keys and the usage
//	POST /account/codes              asks for a code                       → /account/code
//	GET  /account/code               the code's form
//	POST /account/sessions           opens a session                       → /account
//	POST /account/keys               makes a key and shows it: the one answer that ever has it
//	POST /account/keys/{id}/revoke   revokes one                           → /account
//	POST /account/signout            closes the session                    → /account
//
// The same under /en. What a form was sent for ends with a page of its own (303), so that loading it again sends nothing; only a new
// key is shown by the answer itself. A GET of a path that takes forms leads back to /account. Refusals come with the form, and what
// was typed, and a status: 403 a form that is not ours any more, 409, 422 what was typed wrong, 429 and 503 with Retry-After. A
// wrong code and an expired one, a known address and an unknown one give the same page, byte for byte but for tokens (K2, K3).
//
// # Secrets
//
//	a key       in the answer that made it, which no cache keeps (no-store); nowhere else, and in no URL, cookie or log
//	a session   in a cookie (cookies.go): HttpOnly, SameSite=Strict, for these pages alone; Secure and by the name __Secure-… where
//	            the service is reached by https
//	a code      in the form's body alone
//
// A form is taken when the browser says that it comes from here (origin.go, S11), the cookie came along, and its token is good
// (forms.go). The form that makes a key is good once: a second click or a reload makes no second key. Answers may be compressed: no
// page of another site can make a browser ask for them with its cookies, and tokens differ each time.
//
// # Where to change what
//
//	account.go   Config, New, routes
//	visit.go     what every request goes through: cookies, tokens, where it comes from
//	login.go     address, code, session
//	keys.go      keys, usage
//	faults.go    errors of the rules as status and text
//	forms.go     tokens of forms; cookies.go; origin.go
//	files/       texts in both languages, script and style
package account

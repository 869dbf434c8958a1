package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"mime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/fields"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// Paths of the account operations.
const (
	accountPrefix     = "/v1/account/"
	codesPath         = accountPrefix + "codes"
	sessionsPath      = accountPrefix + "sessions"
	keysPath          = accountPrefix + "keys"
	keyPath           = keysPath + "/{id}"
	usagePath         = accountPrefix + "usage"
	accountBodyMax    = 4 << 10 // bytes
	parametersMessage = "The request is not valid; details has every problem."
)

// credentialKind is the kind of credential that an account operation requires in the Authorization header.
type credentialKind uint8

const (
	noCredential credentialKind = iota
	sessionToken
	sessionTokenOrKey
)

// accountOperation is an operation under /v1/account: one row of accountOperations.
type accountOperation struct {
	pattern, method string
	credential      credentialKind
	fields          []bodyField // fields of the JSON object in the body; nil: no body allowed
	// answer answers the request, or returns the error for the response.
	answer func(a *accountAPI, ctx *fasthttp.RequestCtx, r *accountRequest) error
}

// accountRequest is a parsed account request. It shares no memory with the HTTP request.
type accountRequest struct {
	credential
	id    string // id of an API key, from the path
	email account.Email
	code  string
	name  string // name of a new API key
}

// accountOperations returns the table of account operations. A new operation also needs a method of accountAPI.
func accountOperations() []accountOperation {
	const post, get, del = fasthttp.MethodPost, fasthttp.MethodGet, fasthttp.MethodDelete
	return []accountOperation{
		{codesPath, post, noCredential, []bodyField{emailField()}, (*accountAPI).requestCode},
		{sessionsPath, post, noCredential, []bodyField{emailField(), codeField()}, (*accountAPI).openSession},
		{sessionsPath, del, sessionToken, nil, (*accountAPI).closeSession},
		{keysPath, get, sessionToken, nil, (*accountAPI).listKeys},
		{keysPath, post, sessionToken, []bodyField{nameField()}, (*accountAPI).createKey},
		{keyPath, del, sessionToken, nil, (*accountAPI).revokeKey},
		{usagePath, get, sessionTokenOrKey, nil, (*accountAPI).usage},
	}
}

// accountPath lists the operations of one path, one for each method.
type accountPath []accountOperation

// operation returns the operation with a method, or nil.
func (p accountPath) operation(method string) *accountOperation {
	for i := range p {
		if p[i].method == method {
			return &p[i]
		}
	}
	return nil
}

// allow returns the value of the header Allow.
func (p accountPath) allow() string {
	var methods []string
	for _, op := range p {
		methods = append(methods, op.method)
		if op.method == fasthttp.MethodGet {
			methods = append(methods, fasthttp.MethodHead)
		}
	}
	return strings.Join(append(methods, fasthttp.MethodOptions), ", ")
}

// isAccountTarget reports whether a request target is below /v1/account.
func isAccountTarget(target []byte) bool {
	path, _ := splitTarget(target)
	return len(path) >= len(accountPrefix) && string(path[:len(accountPrefix)]) == accountPrefix
}

// checkCredential checks only the kind and the form of a credential; Config.Accounts checks later whether it is valid.
func (op *accountOperation) checkCredential(c credential) error {
	switch {
	case op.credential == sessionToken && !c.present:
		return &engine.Error{Code: engine.CodeInvalidSession, Message: "This operation needs a session: send its token as 'Authorization: Bearer TOKEN'."}
	case op.credential == sessionToken && (!c.wellFormed || c.isKey):
		return &engine.Error{Code: engine.CodeInvalidSession, Message: "The credential is not a session token; an API key does not open this operation."}
	case op.credential == sessionTokenOrKey && !c.present:
		return &engine.Error{Code: engine.CodeMissingKey, Message: "This operation needs a key or a session: send it as 'Authorization: Bearer KEY'."}
	case op.credential == sessionTokenOrKey && !c.wellFormed:
		return &engine.Error{Code: engine.CodeInvalidKey, Message: "This is neither a key nor a session token."}
	}
	return nil
}

// contentError is an error in the path, the query or the body of an account request.
type contentError struct {
	code    engine.Code
	message string
	details []params.Problem
}

const originMessage = "must be this server's own: account operations are not for pages of other sites"

// foreignHeader returns the name of the header which shows that a web page of another site sent the request, or "".
func foreignHeader(header *fasthttp.RequestHeader) string {
	origin := header.Peek(fasthttp.HeaderOrigin)
	switch site := header.Peek("Sec-Fetch-Site"); {
	case len(site) > 0:
		if string(site) != "same-origin" && string(site) != "none" {
			return "Sec-Fetch-Site"
		}
	case len(origin) > 0:
		_, host, found := bytes.Cut(origin, []byte("://"))
		if !found || !bytes.EqualFold(host, header.Host()) {
			return fasthttp.HeaderOrigin
		}
	}
	return ""
}

// accountAPI answers the account operations. Danger: the methods must not branch on a secret or on the existence of an
// account, because the response time would reveal them.
type accountAPI struct {
	*responder
	params       params.Table
	accountPaths map[string]accountPath // by pattern; empty without Config.Accounts
}

func newAccountAPI(w *responder, table params.Table) *accountAPI {
	a := &accountAPI{responder: w, params: table, accountPaths: map[string]accountPath{}}
	if w.config.Accounts != nil {
		for _, op := range accountOperations() {
			a.accountPaths[op.pattern] = append(a.accountPaths[op.pattern], op)
		}
	}
	return a
}

// answerAccount checks method, origin, credential and content of an account request, in this order, and answers it.
// Account requests do not count against a quota.
func (a *accountAPI) answerAccount(ctx *fasthttp.RequestCtx, path accountPath) {
	a.startResponse(ctx)
	method := string(ctx.Method())
	if method == fasthttp.MethodOptions {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, path.allow())
		a.answerEmpty(ctx, fasthttp.StatusNoContent)
		return
	}
	if method == fasthttp.MethodHead {
		method = fasthttp.MethodGet
	}
	op := path.operation(method)
	if op == nil {
		a.rejectMethod(ctx, "operation", path.allow())
		return
	}
	// This is a second line of defence: account operations read no cookies, so such a request has no credential.
	if foreign := foreignHeader(&ctx.Request.Header); foreign != "" && method != fasthttp.MethodGet {
		a.rejectWithDetails(ctx, engine.CodeInvalidParameters, parametersMessage, []params.Problem{{Name: foreign, Message: originMessage}})
		return
	}
	request := &accountRequest{}
	if op.credential != noCredential {
		request.credential = a.credential(ctx)
		if err := op.checkCredential(request.credential); err != nil {
			a.failAccount(ctx, op, err)
			return
		}
	}
	if content := a.readAccount(ctx, op, request); content != nil {
		a.rejectContent(ctx, op, request, content)
		return
	}
	if err := op.answer(a, ctx, request); err != nil {
		a.failAccount(ctx, op, err)
		return
	}
	a.logAccount(ctx, op, "")
}

// wantsAccountBody reports whether the answer depends on the body: the operation takes JSON, and all checks before the
// body pass.
func (a *accountAPI) wantsAccountBody(ctx *fasthttp.RequestCtx, path accountPath) bool {
	op := path.operation(string(ctx.Method()))
	if op == nil || op.fields == nil || foreignHeader(&ctx.Request.Header) != "" || !isJSON(&ctx.Request.Header) {
		return false
	}
	if op.credential == noCredential {
		return true
	}
	request := &accountRequest{credential: a.credential(ctx)}
	if op.checkCredential(request.credential) != nil {
		return false
	}
	_, err := a.windows(request)
	return err == nil
}

// rejectContent answers 400, 413 or 415. But first it checks the credential with Config.Accounts: an invalid credential
// gets 401, whatever the content is.
func (a *accountAPI) rejectContent(ctx *fasthttp.RequestCtx, op *accountOperation, r *accountRequest, c *contentError) {
	if op.credential != noCredential {
		if _, err := a.windows(r); err != nil {
			a.failAccount(ctx, op, err)
			return
		}
	}
	if c.code == engine.CodeMalformedRequest {
		ctx.SetConnectionClose()
	}
	a.rejectWithDetails(ctx, c.code, c.message, c.details)
}

// failAccount answers with an error of an account operation. It logs only a 401; otherwise clients could flood the log
// with bad requests.
func (a *accountAPI) failAccount(ctx *fasthttp.RequestCtx, op *accountOperation, err error) {
	a.answerError(ctx, err)
	if ctx.Response.StatusCode() == fasthttp.StatusUnauthorized {
		a.logAccount(ctx, op, engine.CodeOf(err))
	}
}

func (a *accountAPI) requestCode(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	if err := a.config.Accounts.RequestCode(r.email, account.Requester{Address: a.clientAddress(ctx)}); err != nil {
		return err
	}
	body := encode.Int([]byte(`{"data":{`), "expiresInSeconds", int64(account.CodeLifetime/time.Second))
	body = encode.Int(body, "resendAfterSeconds", int64(account.CodeResendAfter/time.Second))
	a.writeAccount(ctx, fasthttp.StatusAccepted, append(body, `}}`...))
	return nil
}

func (a *accountAPI) openSession(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	token, expires, err := a.config.Accounts.OpenSession(r.email, r.code, account.Requester{Address: a.clientAddress(ctx)})
	if err != nil {
		return err
	}
	body := encode.Field([]byte(`{"data":{`), "token", token.Reveal())
	body = encode.Time(body, "expiresAt", expires)
	a.writeAccount(ctx, fasthttp.StatusOK, append(body, `}}`...))
	return nil
}

func (a *accountAPI) closeSession(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	if err := a.config.Accounts.CloseSession(r.digest); err != nil {
		return err
	}
	a.answerEmpty(ctx, fasthttp.StatusNoContent)
	return nil
}

func (a *accountAPI) listKeys(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	keys, err := a.config.Accounts.Keys(r.digest)
	if err != nil {
		return err
	}
	body := []byte(`{"data":[`)
	for i := range keys {
		body = append(appendKey(encode.Comma(body), &keys[i]), '}')
	}
	a.writeAccount(ctx, fasthttp.StatusOK, append(body, `]}`...))
	return nil
}

func (a *accountAPI) createKey(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	key, secret, err := a.config.Accounts.CreateKey(r.digest, r.name)
	if err != nil {
		return err
	}
	body := appendKey([]byte(`{"data":`), &key)
	body = encode.Field(body, "secret", secret.Reveal())
	ctx.Response.Header.Set(fasthttp.HeaderLocation, keysPath+"/"+key.ID)
	a.writeAccount(ctx, fasthttp.StatusCreated, append(body, `}}`...))
	return nil
}

func (a *accountAPI) revokeKey(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	if err := a.config.Accounts.RevokeKey(r.digest, r.id); err != nil {
		return err
	}
	a.answerEmpty(ctx, fasthttp.StatusNoContent)
	return nil
}

func (a *accountAPI) usage(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	v, err := a.windows(r)
	if err != nil {
		return err
	}
	body := appendUsage([]byte(`{"data":{`), "day", v.Day)
	body = appendUsage(body, "minute", v.Minute)
	a.writeAccount(ctx, fasthttp.StatusOK, append(body, `}}`...))
	return nil
}

// windows returns both quota windows, day and minute, of the credential's account.
func (a *accountAPI) windows(r *accountRequest) (account.QuotaResult, error) {
	if r.isKey {
		return a.config.Accounts.KeyUsage(r.digest)
	}
	return a.config.Accounts.Usage(r.digest)
}

// writeAccount answers with an uncompressed body. (If a body contained a secret and an attacker's text, the compressed
// length would reveal the secret.)
func (a *accountAPI) writeAccount(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.SetStatusCode(status)
	ctx.Response.SetBodyRaw(body)
}

// logAccount logs an account request without its values. denyCode is the code of the error, or "" after success.
func (a *accountAPI) logAccount(ctx *fasthttp.RequestCtx, op *accountOperation, denyCode engine.Code) {
	a.config.Logger.LogAttrs(context.Background(), slog.LevelInfo, "account operation",
		slog.String("requestId", string(a.idOf(ctx))), slog.String("operation", op.method+" "+op.pattern),
		slog.Int("status", ctx.Response.StatusCode()), slog.String("code", string(denyCode)),
		slog.String("network", fields.LoggedNetwork(a.clientAddress(ctx))))
}

// readAccount parses the URL and the body of an account request into r. The error reports all problems at once.
func (a *accountAPI) readAccount(ctx *fasthttp.RequestCtx, op *accountOperation, r *accountRequest) *contentError {
	body := ctx.Request.Body()
	length := max(len(body), ctx.Request.Header.ContentLength()) // answerExpectation calls serve before the body is read
	switch {
	case length > accountBodyMax:
		return &contentError{code: engine.CodePayloadTooLarge, message: bodyLong}
	case op.fields == nil && length > 0:
		return &contentError{code: engine.CodeMalformedRequest, message: bodyNotTaken}
	case op.fields != nil && !isJSON(&ctx.Request.Header):
		return &contentError{code: engine.CodeUnsupportedMediaType, message: bodyMedia}
	}
	path, text := splitTarget(ctx.Request.Header.RequestURI())
	problems := a.params.Read(new(params.Query), params.None, path, text, params.Options{Catalogue: a.config.Catalogue, AllowUnknown: a.config.AllowUnknownParameters})
	if op.pattern == keyPath {
		id, ok := params.PathID(path[len(keysPath)+1:])
		if !ok {
			problems = append(problems, params.Problem{Name: "id", Message: params.ProblemID})
		}
		r.id = string(id)
	}
	if op.fields != nil {
		found, ok := readBody(body, op.fields, r)
		if !ok {
			return &contentError{code: engine.CodeMalformedRequest, message: bodyNotJSON}
		}
		problems = append(problems, found...)
	}
	if len(problems) == 0 {
		return nil
	}
	return &contentError{engine.CodeInvalidParameters, parametersMessage, problems}
}

func (a *accountAPI) credential(ctx *fasthttp.RequestCtx) credential {
	lines := ctx.Request.Header.PeekAll(fasthttp.HeaderAuthorization)
	c := credential{present: len(lines) > 0}
	if len(lines) != 1 {
		return c
	}
	token, ok := bearerText(lines[0])
	if !ok {
		return c
	}
	if c.digest, c.isKey = account.ParseKey(token); c.isKey {
		c.wellFormed = true
		return c
	}
	if len(token) > len(account.SessionPrefix) && string(token[:len(account.SessionPrefix)]) == account.SessionPrefix {
		c.digest, c.wellFormed = sha256.Sum256(token), true
	}
	return c
}

// appendKey appends an API key as JSON, without its secret and without the closing brace.
func appendKey(dst []byte, key *account.KeyRecord) []byte {
	state := "active"
	if !key.Active() {
		state = "revoked"
	}
	dst = encode.Field(append(dst, '{'), "id", key.ID)
	dst = encode.Field(dst, "name", key.Name)
	dst = encode.Field(dst, "hint", key.Hint)
	dst = encode.Field(dst, "status", state)
	dst = encode.Time(dst, "createdAt", key.CreatedAt)
	dst = encode.Time(dst, "revokedAt", key.RevokedAt)
	return encode.Time(dst, "lastUsedAt", key.LastUsed)
}

// appendUsage appends a quota window as JSON, with resetAt rounded up to whole seconds as in the rate-limit headers.
func appendUsage(dst []byte, name string, w account.Window) []byte {
	dst = append(encode.Name(dst, name), '{')
	dst = encode.Int(dst, "limit", int64(w.Limit))
	dst = encode.Int(dst, "remaining", int64(w.Remaining))
	return append(encode.Time(dst, "resetAt", time.Unix(epochSeconds(w.Reset), 0)), '}')
}

// bearerScheme is in small letters. API keys and session tokens are read only from the Authorization header, never from
// the URL, a cookie or a body.
const bearerScheme = "bearer"

// bearerText returns the text after "Bearer" and spaces in the value of Authorization, or false for another scheme.
func bearerText(line []byte) ([]byte, bool) {
	if len(line) <= len(bearerScheme) || line[len(bearerScheme)] != ' ' || !fields.EqualFold(line[:len(bearerScheme)], bearerScheme) {
		return nil, false
	}
	return bytes.TrimLeft(line[len(bearerScheme):], " "), true
}

// credential is the credential of an account request: a session token or an API key.
type credential struct {
	digest     account.Digest // set if wellFormed
	isKey      bool           // an API key
	present    bool           // the request has an Authorization header
	wellFormed bool           // the header has the form of a session token or a key
}

// forwardedFor is the only header from which a client address is read, and only if a trusted proxy sent it. Forwarded
// and X-Real-IP are ignored, because many proxies pass on the values that the client has set.
const forwardedFor = "X-Forwarded-For"

// Messages for a body that cannot be parsed.
const (
	bodyNotJSON  = "The body must be one JSON object in UTF-8 and nothing else. The connection is closed."
	bodyNotTaken = "This operation takes no body. The connection is closed."
	bodyMedia    = "The body must be JSON, sent as Content-Type: application/json in UTF-8, not compressed."
	bodyLong     = "The body must be at most 4096 bytes long."
)

// bodyField is a field of a JSON body. All fields are strings.
type bodyField struct {
	name     string
	required bool
	grammar  string                                     // the message for an invalid value
	set      func(r *accountRequest, value string) bool // stores the value; false if it is invalid
}

func emailField() bodyField {
	return bodyField{"email", true, "must be an e-mail address, as name@example.com", func(r *accountRequest, value string) bool {
		email, err := account.ParseEmail(value)
		r.email = email
		return err == nil
	}}
}

func codeField() bodyField {
	return bodyField{"code", true, "must be the eight digits of the e-mail, as a text", func(r *accountRequest, value string) bool {
		r.code = value
		return account.ValidCode(value)
	}}
}

// nameField is the name of a new API key.
func nameField() bodyField {
	return bodyField{"name", false, "must be a text of at most 80 characters, without control characters, and not a key", func(r *accountRequest, value string) bool {
		r.name = value
		return account.ValidKeyName(value)
	}}
}

// isJSON reports whether the headers describe an uncompressed JSON body in UTF-8.
func isJSON(header *fasthttp.RequestHeader) bool {
	media, parameters, err := mime.ParseMediaType(string(header.ContentType()))
	if err != nil || media != "application/json" || len(header.Peek(fasthttp.HeaderContentEncoding)) > 0 {
		return false
	}
	charset, named := parameters["charset"]
	return !named || strings.EqualFold(charset, "utf-8")
}

// readBody parses a body into r. It returns false if the body is not exactly one JSON object. Field names are
// case-sensitive; unknown and repeated fields are problems. The problems contain no values of the body.
func readBody(body []byte, fields []bodyField, r *accountRequest) (problems []params.Problem, ok bool) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return nil, false
	}
	seen := map[string]int{}
	for decoder.More() {
		token, err := decoder.Token()
		name, isText := token.(string)
		var value json.RawMessage
		if err != nil || !isText || decoder.Decode(&value) != nil {
			return nil, false
		}
		if d := readField(fields, name, value, seen, r); d != nil && len(problems) < params.ProblemsMax {
			problems = append(problems, *d)
		}
	}
	for _, field := range fields {
		if field.required && seen[field.name] == 0 {
			problems = append(problems, params.Problem{Name: field.name, Message: params.ProblemMissing + field.grammar})
		}
	}
	return problems, true
}

// readField parses one field into r. It returns nil for a valid field, and for a repeated unknown name.
func readField(fields []bodyField, name string, value json.RawMessage, seen map[string]int, r *accountRequest) *params.Problem {
	index := seen[name]
	seen[name]++
	field := slices.IndexFunc(fields, func(f bodyField) bool { return f.name == name })
	switch {
	case field < 0 && index > 0:
		return nil
	case field < 0 && params.IsCredentialName(name):
		return &params.Problem{Name: params.TruncatedName([]byte(name)), Message: problemBodyKey}
	case field < 0:
		return &params.Problem{Name: params.TruncatedName([]byte(name)), Message: "is not known; this operation knows " + fieldNames(fields)}
	case index > 0:
		return &params.Problem{Name: name, Index: index, Message: params.ProblemRepeated}
	}
	var text *string
	if json.Unmarshal(value, &text) != nil || text == nil || !fields[field].set(r, *text) {
		return &params.Problem{Name: name, Message: fields[field].grammar}
	}
	return nil
}

// problemBodyKey is the message for a field whose name looks like that of a credential.
const problemBodyKey = "is not known: keys and session tokens go in the Authorization header, as 'Bearer KEY', and never in a body"

func fieldNames(fields []bodyField) string {
	names := make([]string, 0, len(fields))
	for _, field := range fields {
		names = append(names, field.name)
	}
	return strings.Join(names, ", ")
}

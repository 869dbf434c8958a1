package httpapi

import (
	"bytes"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
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

// credentialKind is the credential that an account operation requires in the Authorization header.
type credentialKind uint8

const (
	noCredential credentialKind = iota
	sessionToken
	sessionTokenOrKey
)

// accountOperation is an operation under /v1/account: a row of the table accountOperations.
type accountOperation struct {
	pattern, method string
	credential      credentialKind
	fields          []bodyField // fields of the JSON object in the body; nil: the request must have no body
	// answer answers the request or returns the error to answer with.
	answer func(s *Server, ctx *fasthttp.RequestCtx, r *accountRequest) error
}

// accountRequest is the parsed request of an account operation. It does not point into the buffers of the HTTP request.
type accountRequest struct {
	credential
	id    string // id of an API key, from the path
	email account.Email
	code  string
	name  string // name of a new API key
}

// accountOperations returns the table of account operations. A new operation also needs a function in
// account_answers.go.
func accountOperations() []accountOperation {
	const post, get, del = fasthttp.MethodPost, fasthttp.MethodGet, fasthttp.MethodDelete
	return []accountOperation{
		{codesPath, post, noCredential, []bodyField{emailField()}, (*Server).requestCode},
		{sessionsPath, post, noCredential, []bodyField{emailField(), codeField()}, (*Server).openSession},
		{sessionsPath, del, sessionToken, nil, (*Server).closeSession},
		{keysPath, get, sessionToken, nil, (*Server).listKeys},
		{keysPath, post, sessionToken, []bodyField{nameField()}, (*Server).createKey},
		{keyPath, del, sessionToken, nil, (*Server).revokeKey},
		{usagePath, get, sessionTokenOrKey, nil, (*Server).usage},
	}
}

// accountPath has the operations of one path: one for each method.
type accountPath struct {
	operations []accountOperation
	allow      string // value of the header Allow
}

// operation returns the operation with a method, or nil.
func (p *accountPath) operation(method string) *accountOperation {
	index := slices.IndexFunc(p.operations, func(op accountOperation) bool { return op.method == method })
	if index < 0 {
		return nil
	}
	return &p.operations[index]
}

// accountPaths returns the paths of the account operations by pattern.
func accountPaths() map[string]*accountPath {
	paths := map[string]*accountPath{}
	for _, op := range accountOperations() {
		if paths[op.pattern] == nil {
			paths[op.pattern] = &accountPath{}
		}
		path := paths[op.pattern]
		path.operations = append(path.operations, op)
		path.allow = allowed(path.operations)
	}
	return paths
}

// accountPathOf returns the account operations of a path, or nil.
func (s *Server) accountPathOf(path []byte) *accountPath {
	found := s.accountPaths[string(path)]
	if found == nil && bytes.HasPrefix(path, []byte(keysPath+"/")) && oneSegment(path) {
		found = s.accountPaths[keyPath]
	}
	return found
}

// allowed returns the value of the header Allow for the operations of a path.
func allowed(operations []accountOperation) string {
	var methods []string
	for _, op := range operations {
		methods = append(methods, op.method)
		if op.method == fasthttp.MethodGet {
			methods = append(methods, fasthttp.MethodHead)
		}
	}
	return strings.Join(append(methods, fasthttp.MethodOptions), ", ")
}

// isAccountTarget reports whether a request is for an account operation. It runs on every request.
func isAccountTarget(target []byte) bool {
	path, _ := splitTarget(target)
	return len(path) >= len(accountPrefix) && string(path[:len(accountPrefix)]) == accountPrefix
}

// answerAccount checks method, origin, credential and content of an account request, in this order, and answers it.
// Account requests do not count against a quota.
func (s *Server) answerAccount(ctx *fasthttp.RequestCtx, path *accountPath) {
	s.startResponse(ctx)
	method := string(ctx.Method())
	if method == fasthttp.MethodOptions {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, path.allow)
		s.answerEmpty(ctx, fasthttp.StatusNoContent)
		return
	}
	if method == fasthttp.MethodHead {
		method = fasthttp.MethodGet
	}
	op := path.operation(method)
	if op == nil {
		s.rejectMethod(ctx, "operation", path.allow)
		return
	}
	if method != fasthttp.MethodGet && s.rejectCrossSite(ctx) {
		return
	}
	request := &accountRequest{}
	if op.credential != noCredential {
		request.credential = s.credential(ctx)
		if err := op.checkCredential(request.credential); err != nil {
			s.failAccount(ctx, op, err)
			return
		}
	}
	if content := s.readAccount(ctx, op, request); content != nil {
		s.rejectContent(ctx, op, request, content)
		return
	}
	if err := s.plantedError(ctx); err != nil {
		s.failAccount(ctx, op, err)
		return
	}
	if err := op.answer(s, ctx, request); err != nil {
		s.failAccount(ctx, op, err)
		return
	}
	s.logAccount(ctx, op, "")
}

// wantsAccountBody reports whether the answer to an account request depends on its body: the checks before that of the
// content pass, and the operation takes JSON.
func (s *Server) wantsAccountBody(ctx *fasthttp.RequestCtx, path *accountPath) bool {
	op := path.operation(string(ctx.Method()))
	if op == nil || op.fields == nil || foreignHeader(&ctx.Request.Header) != "" || !isJSON(&ctx.Request.Header) {
		return false
	}
	if op.credential == noCredential {
		return true
	}
	request := &accountRequest{credential: s.credential(ctx)}
	if op.checkCredential(request.credential) != nil {
		return false
	}
	_, err := s.windows(request)
	return err == nil
}

// checkCredential checks the kind and the form of a credential. Config.Accounts looks up the account later.
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

// rejectContent answers 400, 413 or 415. If the operation needs a credential, it first looks up the account, because an
// invalid credential must be answered with 401 whatever the content is.
func (s *Server) rejectContent(ctx *fasthttp.RequestCtx, op *accountOperation, r *accountRequest, c *contentError) {
	if op.credential != noCredential {
		if _, err := s.windows(r); err != nil {
			s.failAccount(ctx, op, err)
			return
		}
	}
	if c.code == engine.CodeMalformedRequest {
		ctx.SetConnectionClose()
	}
	s.rejectWithDetails(ctx, c.code, c.message, c.details)
}

// failAccount answers with an error of an account operation. It logs only a 401: if it logged rejections for load or a
// limit, a flood of requests would flood the log.
func (s *Server) failAccount(ctx *fasthttp.RequestCtx, op *accountOperation, err error) {
	s.answerError(ctx, err)
	if ctx.Response.StatusCode() == fasthttp.StatusUnauthorized {
		s.logAccount(ctx, op, codeOf(err))
	}
}

const originMessage = "must be this server's own: account operations are not for pages of other sites"

// rejectCrossSite answers 400 and returns true if a browser sent the request for a page of another site. This is a
// second protection: such a page has no credential anyway, because account operations do not read cookies.
func (s *Server) rejectCrossSite(ctx *fasthttp.RequestCtx) bool {
	foreign := foreignHeader(&ctx.Request.Header)
	if foreign == "" {
		return false
	}
	s.rejectWithDetails(ctx, engine.CodeInvalidParameters, parametersMessage, []params.Problem{{Name: foreign, Message: originMessage}})
	return true
}

// foreignHeader returns the name of the header that says that the request is for a page of another site, or "".
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

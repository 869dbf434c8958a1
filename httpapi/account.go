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

// credential is what an account operation wants in the Authorization header.
type credentialKind uint8

const (
	noCredential credentialKind = iota
	sessionToken
	sessionTokenOrKey
)

// accountOperation is one row of the table of account operations.
type accountOperation struct {
	pattern, method string
	credential      credentialKind
	fields          []bodyField // of the JSON object in the body; nil = no body
	answer          func(s *Server, ctx *fasthttp.RequestCtx, r *accountRequest) error
}

// accountRequest is what an account operation was sent, in its own memory.
type accountRequest struct {
	credential
	id    string // of the key in the path
	email account.Email
	code  string
	name  string // of a new key
}

// accountOperations is the table of K1. A new operation is a row here and a function in account_answers.go.
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

// accountPath is a path with its operations.
type accountPath struct {
	operations []accountOperation
	allow      string
}

// accountPaths are the paths of the account operations, by pattern.
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

// allowed is the value of Allow for the operations of a path.
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

// isAccountTarget tells requests whose answers no page of another origin may read. It runs on every request.
func isAccountTarget(target []byte) bool {
	path, _ := splitTarget(target)
	return len(path) >= len(accountPrefix) && string(path[:len(accountPrefix)]) == accountPrefix
}

// answerAccount takes an account request through the checks that follow the route: method, origin, credential,
// content. It is never charged.
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
	at := slices.IndexFunc(path.operations, func(op accountOperation) bool { return op.method == method })
	if at < 0 {
		s.refuseMethod(ctx, "operation", path.allow)
		return
	}
	op := &path.operations[at]
	if method != fasthttp.MethodGet && s.refuseCrossSite(ctx) {
		return
	}
	request := &accountRequest{}
	if op.credential != noCredential {
		request.credential = s.credential(ctx)
		if err := op.refuseCredential(request.credential); err != nil {
			s.failAccount(ctx, op, err)
			return
		}
	}
	if content := s.readAccount(ctx, op, request); content != nil {
		s.refuseContent(ctx, op, request, content)
		return
	}
	if err := s.plantedFor(ctx); err != nil {
		s.failAccount(ctx, op, err)
		return
	}
	if err := op.answer(s, ctx, request); err != nil {
		s.failAccount(ctx, op, err)
		return
	}
	s.logAccount(ctx, op, "")
}

// refuseCredential checks the form of a credential. The account is looked up later, by the digest of the token.
func (op *accountOperation) refuseCredential(c credential) error {
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

// contentRefusal is what is wrong with a request besides its credential.
type contentRefusal struct {
	code    engine.Code
	message string
	details []params.Problem
}

// refuseContent answers 400, 413 or 415, unless the credential opens nothing: authentication comes first. A
// good request learns it from the answer itself, so only a bad one asks.
func (s *Server) refuseContent(ctx *fasthttp.RequestCtx, op *accountOperation, r *accountRequest, c *contentRefusal) {
	if op.credential != noCredential {
		if _, err := s.windows(r); err != nil {
			s.failAccount(ctx, op, err)
			return
		}
	}
	if c.code == engine.CodeMalformedRequest {
		ctx.SetConnectionClose()
	}
	s.refuseWith(ctx, c.code, c.message, c.details)
}

func (s *Server) failAccount(ctx *fasthttp.RequestCtx, op *accountOperation, err error) {
	s.answerError(ctx, err)
	if ctx.Response.StatusCode() == fasthttp.StatusUnauthorized {
		s.logAccount(ctx, op, codeOf(err))
	}
}

// originRefusal says why a request that a page of another site made is not carried out.
const originRefusal = "must be this server's own: account operations are not for pages of other sites"

// refuseCrossSite refuses what a browser sends for a page of another site. Nothing here reads cookies, so
// such a page could do nothing anyway; this is a second door. Programs send neither header.
func (s *Server) refuseCrossSite(ctx *fasthttp.RequestCtx) bool {
	header := &ctx.Request.Header
	origin := header.Peek(fasthttp.HeaderOrigin)
	foreign := ""
	switch site := header.Peek("Sec-Fetch-Site"); {
	case len(site) > 0:
		if string(site) != "same-origin" && string(site) != "none" {
			foreign = "Sec-Fetch-Site"
		}
	case len(origin) > 0:
		_, host, found := bytes.Cut(origin, []byte("://"))
		if !found || !bytes.EqualFold(host, header.Host()) {
			foreign = fasthttp.HeaderOrigin
		}
	}
	if foreign == "" {
		return false
	}
	s.refuseWith(ctx, engine.CodeInvalidParameters, parametersMessage, []params.Problem{{Name: foreign, Message: originRefusal}})
	return true
}

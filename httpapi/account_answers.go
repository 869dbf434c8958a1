package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/encode"
	"github.com/tasard/tasard/httpapi/internal/fields"
)

// The account operations: ask the accounts, write what they say. Each either answers or gives the error to answer
// with. Nothing in here looks at a secret or at whether an account is there, so what they take to answer tells
// neither.

func (s *Server) requestCode(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	if err := s.config.Accounts.RequestCode(r.email, s.clientAddress(ctx)); err != nil {
		return err
	}
	body := encode.Int([]byte(`{"data":{`), "expiresInSeconds", int64(account.CodeLifetime/time.Second))
	body = encode.Int(body, "resendAfterSeconds", int64(account.CodeResendAfter/time.Second))
	s.writeAccount(ctx, fasthttp.StatusAccepted, append(body, `}}`...))
	return nil
}

func (s *Server) openSession(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	token, expires, err := s.config.Accounts.OpenSession(r.email, r.code, s.clientAddress(ctx))
	if err != nil {
		return err
	}
	body := encode.Field([]byte(`{"data":{`), "token", token.Reveal())
	body = encode.Time(body, "expiresAt", expires)
	s.writeAccount(ctx, fasthttp.StatusOK, append(body, `}}`...))
	return nil
}

func (s *Server) closeSession(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	if err := s.config.Accounts.CloseSession(r.digest); err != nil {
		return err
	}
	s.answerEmpty(ctx, fasthttp.StatusNoContent)
	return nil
}

func (s *Server) listKeys(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	keys, err := s.config.Accounts.Keys(r.digest)
	if err != nil {
		return err
	}
	body := []byte(`{"data":[`)
	for i := range keys {
		body = append(appendKey(encode.Comma(body), &keys[i]), '}')
	}
	s.writeAccount(ctx, fasthttp.StatusOK, append(body, `]}`...))
	return nil
}

func (s *Server) createKey(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	key, secret, err := s.config.Accounts.CreateKey(r.digest, r.name)
	if err != nil {
		return err
	}
	body := appendKey([]byte(`{"data":`), &key)
	body = encode.Field(body, "secret", secret.Reveal())
	ctx.Response.Header.Set(fasthttp.HeaderLocation, keysPath+"/"+key.ID)
	s.writeAccount(ctx, fasthttp.StatusCreated, append(body, `}}`...))
	return nil
}

func (s *Server) revokeKey(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	if err := s.config.Accounts.RevokeKey(r.digest, r.id); err != nil {
		return err
	}
	s.answerEmpty(ctx, fasthttp.StatusNoContent)
	return nil
}

func (s *Server) usage(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	v, err := s.windows(r)
	if err != nil {
		return err
	}
	body := appendUsage([]byte(`{"data":{`), "day", v.Day)
	body = appendUsage(body, "minute", v.Minute)
	s.writeAccount(ctx, fasthttp.StatusOK, append(body, `}}`...))
	return nil
}

// windows are both quota windows of the account that the credential opens, or the error that it opens none.
func (s *Server) windows(r *accountRequest) (account.QuotaResult, error) {
	if r.isKey {
		return s.config.Accounts.KeyUsage(r.digest)
	}
	return s.config.Accounts.Usage(r.digest)
}

// writeAccount answers with a body. It is never compressed: what is secret and what a caller chose stand side by
// side in it.
func (s *Server) writeAccount(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.SetStatusCode(status)
	ctx.Response.SetBodyRaw(body)
}

// appendKey appends a key as it is listed, and leaves the object open.
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

// appendUsage appends a window; resetAt is whole seconds, rounded up as in the headers.
func appendUsage(dst []byte, name string, w account.Window) []byte {
	dst = append(encode.Name(dst, name), '{')
	dst = encode.Int(dst, "limit", int64(w.Limit))
	dst = encode.Int(dst, "remaining", int64(w.Remaining))
	return append(encode.Time(dst, "resetAt", time.Unix(fields.EpochSeconds(w.Reset), 0)), '}')
}

// logAccount logs the operation, but no value of the request. Refusals for load or a limit are not logged, so that a
// flood of requests does not flood the log.
func (s *Server) logAccount(ctx *fasthttp.RequestCtx, op *accountOperation, refused engine.Code) {
	s.config.Logger.LogAttrs(context.Background(), slog.LevelInfo, "account operation",
		slog.String("requestId", string(s.idOf(ctx))), slog.String("operation", op.method+" "+op.pattern),
		slog.Int("status", ctx.Response.StatusCode()), slog.String("code", string(refused)),
		slog.String("network", account.LoggedNetwork(s.clientAddress(ctx))))
}

// codeOf is the code of an error of the rules, "" for another.
func codeOf(err error) engine.Code {
	var named *engine.Error
	if errors.As(err, &named) {
		return named.Code
	}
	return ""
}

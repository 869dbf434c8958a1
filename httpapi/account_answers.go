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

// The functions here answer the account operations (/v1/account). Danger: they must not branch on a secret or on
// whether an account exists, because the response time would reveal it.

func (s *Server) requestCode(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	if err := s.config.Accounts.RequestCode(r.email, account.Requester{Address: s.clientAddress(ctx)}); err != nil {
		return err
	}
	body := encode.Int([]byte(`{"data":{`), "expiresInSeconds", int64(account.CodeLifetime/time.Second))
	body = encode.Int(body, "resendAfterSeconds", int64(account.CodeResendAfter/time.Second))
	s.writeAccount(ctx, fasthttp.StatusAccepted, append(body, `}}`...))
	return nil
}

func (s *Server) openSession(ctx *fasthttp.RequestCtx, r *accountRequest) error {
	token, expires, err := s.config.Accounts.OpenSession(r.email, r.code, account.Requester{Address: s.clientAddress(ctx)})
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

// windows returns both quota windows, day and minute, of the account to which the credential belongs.
func (s *Server) windows(r *accountRequest) (account.QuotaResult, error) {
	if r.isKey {
		return s.config.Accounts.KeyUsage(r.digest)
	}
	return s.config.Accounts.Usage(r.digest)
}

// writeAccount answers with a body. It does not compress the body: if a body has a secret and text that an attacker can
// choose, its compressed length reveals the secret.
func (s *Server) writeAccount(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.SetStatusCode(status)
	ctx.Response.SetBodyRaw(body)
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

// appendUsage appends a quota window as JSON. resetAt is rounded up to whole seconds, as in the rate-limit headers.
func appendUsage(dst []byte, name string, w account.Window) []byte {
	dst = append(encode.Name(dst, name), '{')
	dst = encode.Int(dst, "limit", int64(w.Limit))
	dst = encode.Int(dst, "remaining", int64(w.Remaining))
	return append(encode.Time(dst, "resetAt", time.Unix(fields.EpochSeconds(w.Reset), 0)), '}')
}

// logAccount logs an operation without the values in the request. denyCode is the code of the error, or "" if the
// operation succeeded.
func (s *Server) logAccount(ctx *fasthttp.RequestCtx, op *accountOperation, denyCode engine.Code) {
	s.config.Logger.LogAttrs(context.Background(), slog.LevelInfo, "account operation",
		slog.String("requestId", string(s.idOf(ctx))), slog.String("operation", op.method+" "+op.pattern),
		slog.Int("status", ctx.Response.StatusCode()), slog.String("code", string(denyCode)),
		slog.String("network", fields.LoggedNetwork(s.clientAddress(ctx))))
}

// codeOf returns the code of an engine.Error, or "" for other errors.
func codeOf(err error) engine.Code {
	var named *engine.Error
	if errors.As(err, &named) {
		return named.Code
	}
	return ""
}

package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// The paths of the account operations (K1).
const (
	codesPath    = "/v1/account/codes"
	sessionsPath = "/v1/account/sessions"
	keysPath     = "/v1/account/keys"
	usagePath    = "/v1/account/usage"
)

// CodeSent says how long a login code lives.
type CodeSent struct {
	ExpiresInSeconds   int `json:"expiresInSeconds"`
	ResendAfterSeconds int `json:"resendAfterSeconds"`
}

// Session opens an account for a quarter of an hour. It is no API key.
type Session struct {
	Token     Secret    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Key is an API key as it is listed.
type Key struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Hint       string     `json:"hint"`   // the last characters of the secret
	Status     string     `json:"status"` // active or revoked
	CreatedAt  time.Time  `json:"createdAt"`
	RevokedAt  *time.Time `json:"revokedAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
}

// NewKey is a key with its secret, which nobody is told a second time.
type NewKey struct {
	Key
	Secret Secret `json:"secret"`
}

// Window is a limit as it stands.
type Window struct {
	Limit     int       `json:"limit"`
	Remaining int       `json:"remaining"`
	ResetAt   time.Time `json:"resetAt"`
}

// Usage is both limits of an account.
type Usage struct {
	Day    Window `json:"day"`
	Minute Window `json:"minute"`
}

func (s *Session) validate() error { return errorIf(s.Token == "", "a session without token") }
func (k *Key) validate() error     { return errorIf(k.ID == "", "a key without id") }
func (k *NewKey) validate() error {
	return errors.Join(k.Key.validate(), errorIf(k.Secret == "", "a new key without secret"))
}

// RequestCode has a login code sent to an address. It is never sent twice by itself: a new code voids the one before (K2).
func (c *Client) RequestCode(ctx context.Context, email string) (*CodeSent, error) {
	return sendForData[CodeSent](ctx, c, &call{method: http.MethodPost, path: codesPath, body: map[string]string{"email": email}})
}

// SignIn makes a session of a code. The first one of an address makes its account.
func (c *Client) SignIn(ctx context.Context, email, code string) (*Session, error) {
	return sendForData[Session](ctx, c, &call{method: http.MethodPost, path: sessionsPath, body: map[string]string{"email": email, "code": code}})
}

// SignOut ends a session.
func (c *Client) SignOut(ctx context.Context, session Secret) error {
	return c.send(ctx, &call{method: http.MethodDelete, path: sessionsPath, secret: string(session)}, nil)
}

// Keys lists the keys of an account, revoked ones too.
func (c *Client) Keys(ctx context.Context, session Secret) ([]Key, error) {
	return sendForList[Key](ctx, c, &call{method: http.MethodGet, path: keysPath, secret: string(session), idempotent: true})
}

// CreateKey makes a key; the name is for people and may be "". The third active one is an *Error of CodeKeyLimitReached.
func (c *Client) CreateKey(ctx context.Context, session Secret, name string) (*NewKey, error) {
	body := map[string]string{}
	if name != "" {
		body["name"] = name
	}
	return sendForData[NewKey](ctx, c, &call{method: http.MethodPost, path: keysPath, secret: string(session), body: body})
}

// RevokeKey ends a key, for the next request already. A key that is revoked stays so.
func (c *Client) RevokeKey(ctx context.Context, session Secret, id string) error {
	path := keysPath + "/" + url.PathEscape(id)
	return c.send(ctx, &call{method: http.MethodDelete, path: path, secret: string(session), idempotent: true}, nil)
}

// Usage is where an account stands: that of a session or key, "" for that of the client's own key. It costs nothing.
func (c *Client) Usage(ctx context.Context, secret Secret) (*Usage, error) {
	secret = cmp.Or(secret, c.config.Key)
	return sendForData[Usage](ctx, c, &call{method: http.MethodGet, path: usagePath, secret: string(secret), idempotent: true})
}

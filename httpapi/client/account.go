package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// Paths of the account operations.
const (
	codesPath    = "/v1/account/codes"
	sessionsPath = "/v1/account/sessions"
	keysPath     = "/v1/account/keys"
	usagePath    = "/v1/account/usage"
)

// CodeSent is the response to a request for a login code.
type CodeSent struct {
	ExpiresInSeconds   int `json:"expiresInSeconds"`
	ResendAfterSeconds int `json:"resendAfterSeconds"`
}

// Session is a login session of 15 minutes. Its token can manage API keys, but is not an API key itself.
type Session struct {
	Token     Secret    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Key is an API key without its secret.
type Key struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Hint       string     `json:"hint"`   // last characters of the secret
	Status     string     `json:"status"` // active or revoked
	CreatedAt  time.Time  `json:"createdAt"`
	RevokedAt  *time.Time `json:"revokedAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
}

// NewKey is a new key with its secret, which the node does not show again.
type NewKey struct {
	Key
	Secret Secret `json:"secret"`
}

// Window is the state of a quota window, which is a day or a minute.
type Window struct {
	Limit     int       `json:"limit"`
	Remaining int       `json:"remaining"`
	ResetAt   time.Time `json:"resetAt"`
}

// Usage is the state of the day and minute limits of an account.
type Usage struct {
	Day    Window `json:"day"`
	Minute Window `json:"minute"`
}

func (s *Session) validate() error { return errorIf(s.Token == "", "a session without token") }
func (k *Key) validate() error     { return errorIf(k.ID == "", "a key without id") }
func (k *NewKey) validate() error {
	return errors.Join(k.Key.validate(), errorIf(k.Secret == "", "a new key without secret"))
}

// RequestCode asks the node to send a login code to an e-mail address. The request is not retried after a broken
// connection, because a new code invalidates the previous one.
func (c *Client) RequestCode(ctx context.Context, email string) (*CodeSent, error) {
	return sendForData[CodeSent](ctx, c, &call{method: http.MethodPost, path: codesPath, body: map[string]string{"email": email}})
}

// SignIn opens a session with a login code, and creates the account if it is new.
func (c *Client) SignIn(ctx context.Context, email, code string) (*Session, error) {
	return sendForData[Session](ctx, c, &call{method: http.MethodPost, path: sessionsPath, body: map[string]string{"email": email, "code": code}})
}

// SignOut ends a session.
func (c *Client) SignOut(ctx context.Context, session Secret) error {
	return c.send(ctx, &call{method: http.MethodDelete, path: sessionsPath, secret: string(session)}, nil)
}

// Keys lists the keys of an account, including revoked ones.
func (c *Client) Keys(ctx context.Context, session Secret) ([]Key, error) {
	return sendForList[Key](ctx, c, &call{method: http.MethodGet, path: keysPath, secret: string(session), idempotent: true})
}

// CreateKey creates a key. The name is a label and may be "". If the account already has two active keys, the error has
// CodeKeyLimitReached.
func (c *Client) CreateKey(ctx context.Context, session Secret, name string) (*NewKey, error) {
	body := map[string]string{}
	if name != "" {
		body["name"] = name
	}
	return sendForData[NewKey](ctx, c, &call{method: http.MethodPost, path: keysPath, secret: string(session), body: body})
}

// RevokeKey revokes a key. The node rejects the key from the next request on.
func (c *Client) RevokeKey(ctx context.Context, session Secret, id string) error {
	path := keysPath + "/" + url.PathEscape(id)
	return c.send(ctx, &call{method: http.MethodDelete, path: path, secret: string(session), idempotent: true}, nil)
}

// Usage returns the limits of the account to which secret belongs. secret is a session token or an API key; "" stands
// for Config.Key. The request does not count against the limits.
func (c *Client) Usage(ctx context.Context, secret Secret) (*Usage, error) {
	secret = cmp.Or(secret, c.config.Key)
	return sendForData[Usage](ctx, c, &call{method: http.MethodGet, path: usagePath, secret: string(secret), idempotent: true})
}

package httpapi

import (
	"errors"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/engine/account"
	"github.com/tasard/tasard/httpapi/internal/encode"
)

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
	return append(encode.Time(dst, "resetAt", time.Unix(epochSeconds(w.Reset), 0)), '}')
}

// codeOf returns the code of an engine.Error, or "" for other errors.
func codeOf(err error) engine.Code {
	var named *engine.Error
	if errors.As(err, &named) {
		return named.Code
	}
	return ""
}

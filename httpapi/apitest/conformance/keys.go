package conformance

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/tasard/tasard/httpapi/client"
)

// Paths of K1 that the client does not tell.
const (
	codesPath = accountPath + "codes"
	keysPath  = accountPath + "keys"
)

// address is one that was not used before.
func (k *trial) address() string {
	k.serial++
	return fmt.Sprintf("kit-%d@%s", k.serial, k.options.Domain)
}

// signIn goes from an address to a session.
func (k *trial) signIn(email string) client.Secret {
	k.requestCode(email)
	session, err := k.account.SignIn(k.ctx, email, k.code(email))
	k.done(http.StatusOK, err)
	return session.Token
}

func (k *trial) requestCode(email string) {
	_, err := k.account.RequestCode(k.ctx, email)
	k.done(http.StatusAccepted, err)
}

// wrongCode signs in with what must not open anything.
func (k *trial) wrongCode(email, code string) {
	_, err := k.account.SignIn(k.ctx, email, code)
	k.deny(err, http.StatusUnauthorized, client.CodeInvalidCode)
}

// noSession shows what is no session.
func (k *trial) noSession(secret client.Secret) {
	_, err := k.account.Keys(k.ctx, secret)
	k.deny(err, http.StatusUnauthorized, client.CodeInvalidSession)
}

var eightDigits = regexp.MustCompile(`^\d{8}$`)

func (k *trial) code(email string) string {
	code, err := k.options.Code(email)
	if err != nil {
		k.fatalf("the code for %s: %v", email, err)
	}
	if !eightDigits.MatchString(code) {
		k.errorf("a login code is %q, want 8 digits", code)
	}
	return code
}

func (k *trial) makeKey(session client.Secret) *client.NewKey {
	key, err := k.account.CreateKey(k.ctx, session, "kit")
	k.done(http.StatusCreated, err)
	if got := k.last().header.Get("Location"); got != keysPath+"/"+key.ID {
		k.errorf("%s: Location is %q, the id %q", k.last(), got, key.ID)
	}
	return key
}

var keyShape = regexp.MustCompile(`^[a-z0-9]+_[a-z0-9]+_[0-9A-Za-z]{36}$`)

func checkAccountFlow(k *trial) {
	session := k.signIn(k.address())
	key := k.makeKey(session)
	if !keyShape.MatchString(string(key.Secret)) || key.Hint == "" || !strings.HasSuffix(string(key.Secret), key.Hint) {
		k.errorf("a key has the hint %q and not the shape of K4", key.Hint)
	}
	list, err := k.account.Keys(k.ctx, session)
	k.done(http.StatusOK, err)
	if len(list) != 1 || list[0].ID != key.ID || bytes.Contains(k.last().body, []byte(key.Secret)) || list[0].Status != "active" {
		k.errorf("the list of keys: %d, and the secret is shown once only", len(list))
	}
	for _, secret := range []client.Secret{session, key.Secret} {
		_, err := k.account.Usage(k.ctx, secret)
		k.done(http.StatusOK, err)
	}
	k.noSession(key.Secret)
	k.noSession("")
	_, err = k.account.RequestCode(k.ctx, "no address")
	k.deny(err, http.StatusBadRequest, client.CodeInvalidParameters)
	a := k.send(request{method: http.MethodPost, target: codesPath, body: `{"email":"x@` + k.options.Domain + `"}`, header: []string{"Content-Type", "text/plain"}})
	k.mustRefuse(a, http.StatusUnsupportedMediaType, "unsupported_media_type")
	k.done(http.StatusNoContent, k.account.SignOut(k.ctx, session))
	k.noSession(session)
}

func checkCodes(k *trial) {
	email := k.address()
	k.requestCode(email)
	good := k.code(email)
	wrong := "0" + good[1:]
	if wrong == good {
		wrong = "1" + good[1:]
	}
	k.wrongCode(email, wrong)
	k.wrongCode(k.address(), good)
	_, err := k.account.SignIn(k.ctx, email, good)
	k.done(http.StatusOK, err)
	k.wrongCode(email, good)
	voided := k.address()
	k.requestCode(voided)
	good = k.code(voided)
	for i := range 5 {
		k.wrongCode(voided, fmt.Sprintf("%d%s", (int(good[0]-'0')+1+i)%10, good[1:]))
	}
	k.wrongCode(voided, good)
}

func checkSecondCode(k *trial) {
	email := k.address()
	k.requestCode(email)
	_, err := k.account.RequestCode(k.ctx, email)
	k.deny(err, http.StatusTooManyRequests, client.CodeCodeTooSoon)
}

func checkTwoKeys(k *trial) {
	session := k.signIn(k.address())
	first := k.makeKey(session)
	k.makeKey(session)
	_, err := k.account.CreateKey(k.ctx, session, "")
	k.deny(err, http.StatusConflict, client.CodeKeyLimitReached)
	for range 2 {
		k.done(http.StatusNoContent, k.account.RevokeKey(k.ctx, session, first.ID))
	}
	_, err = k.account.Usage(k.ctx, first.Secret)
	k.deny(err, http.StatusUnauthorized, client.CodeRevokedKey)
	k.makeKey(session)
	k.deny(k.account.RevokeKey(k.ctx, session, "key_none"), http.StatusNotFound, "not_found")
}

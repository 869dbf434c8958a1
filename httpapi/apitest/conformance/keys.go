package conformance

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/tasard/tasard/httpapi/client"
)

// Paths that package client does not export.
const (
	codesPath = accountPath + "codes"
	keysPath  = accountPath + "keys"
)

// newAddress returns an e-mail address that no rule has used.
func (k *ruleRun) newAddress() string {
	k.emailCount++
	return fmt.Sprintf("kit-%d@%s", k.emailCount, k.options.Domain)
}

// signIn requests a login code, opens a session with it and returns the session token.
func (k *ruleRun) signIn(email string) client.Secret {
	k.requestCode(email)
	session, err := k.accountClient.SignIn(k.ctx, email, k.code(email))
	k.wantStatus(http.StatusOK, err)
	return session.Token
}

func (k *ruleRun) requestCode(email string) {
	_, err := k.accountClient.RequestCode(k.ctx, email)
	k.wantStatus(http.StatusAccepted, err)
}

// wantInvalidCode checks that the server rejects a login with the code.
func (k *ruleRun) wantInvalidCode(email, code string) {
	_, err := k.accountClient.SignIn(k.ctx, email, code)
	k.wantRefusal(err, http.StatusUnauthorized, client.CodeInvalidCode)
}

// wantInvalidSession checks that the server rejects the secret as a session token.
func (k *ruleRun) wantInvalidSession(secret client.Secret) {
	_, err := k.accountClient.Keys(k.ctx, secret)
	k.wantRefusal(err, http.StatusUnauthorized, client.CodeInvalidSession)
}

var codePattern = regexp.MustCompile(`^\d{8}$`)

func (k *ruleRun) code(email string) string {
	code, err := k.options.Code(email)
	if err != nil {
		k.fatalf("the code for %s: %v", email, err)
	}
	if !codePattern.MatchString(code) {
		k.errorf("a login code is %q, want 8 digits", code)
	}
	return code
}

func (k *ruleRun) makeKey(session client.Secret) *client.NewKey {
	key, err := k.accountClient.CreateKey(k.ctx, session, "kit")
	k.wantStatus(http.StatusCreated, err)
	k.wantHeader(k.last(), "Location", keysPath+"/"+key.ID)
	return key
}

var keyPattern = regexp.MustCompile(`^[a-z0-9]+_[a-z0-9]+_[0-9A-Za-z]{36}$`)

func checkAccountFlow(k *ruleRun) {
	session := k.signIn(k.newAddress())
	key := k.makeKey(session)
	if !keyPattern.MatchString(string(key.Secret)) || key.Hint == "" || !strings.HasSuffix(string(key.Secret), key.Hint) {
		k.errorf("a new key does not match %s, or does not end with its hint %q", keyPattern, key.Hint)
	}
	list, err := k.accountClient.Keys(k.ctx, session)
	k.wantStatus(http.StatusOK, err)
	if len(list) != 1 || list[0].ID != key.ID || bytes.Contains(k.last().body, []byte(key.Secret)) || list[0].Status != "active" {
		k.errorf("the list has %d keys, want the active one without its secret", len(list))
	}
	for _, secret := range []client.Secret{session, key.Secret} {
		_, err := k.accountClient.Usage(k.ctx, secret)
		k.wantStatus(http.StatusOK, err)
	}
	k.wantInvalidSession(key.Secret)
	k.wantInvalidSession("")
	_, err = k.accountClient.RequestCode(k.ctx, "no address")
	k.wantRefusal(err, http.StatusBadRequest, client.CodeInvalidParameters)
	res := k.send(request{method: http.MethodPost, target: codesPath, body: `{"email":"x@` + k.options.Domain + `"}`, header: []string{"Content-Type", "text/plain"}})
	k.checkError(res, http.StatusUnsupportedMediaType, "unsupported_media_type")
	k.wantStatus(http.StatusNoContent, k.accountClient.SignOut(k.ctx, session))
	k.wantInvalidSession(session)
}

func checkCodes(k *ruleRun) {
	email := k.newAddress()
	k.requestCode(email)
	valid := k.code(email)
	wrong := "0" + valid[1:]
	if wrong == valid {
		wrong = "1" + valid[1:]
	}
	k.wantInvalidCode(email, wrong)
	k.wantInvalidCode(k.newAddress(), valid)
	_, err := k.accountClient.SignIn(k.ctx, email, valid)
	k.wantStatus(http.StatusOK, err)
	k.wantInvalidCode(email, valid)
	exhausted := k.newAddress()
	k.requestCode(exhausted)
	valid = k.code(exhausted)
	for i := range 5 {
		k.wantInvalidCode(exhausted, fmt.Sprintf("%d%s", (int(valid[0]-'0')+1+i)%10, valid[1:]))
	}
	k.wantInvalidCode(exhausted, valid)
}

func checkSecondCode(k *ruleRun) {
	email := k.newAddress()
	k.requestCode(email)
	_, err := k.accountClient.RequestCode(k.ctx, email)
	k.wantRefusal(err, http.StatusTooManyRequests, client.CodeRequestedTooSoon)
}

func checkTwoKeys(k *ruleRun) {
	session := k.signIn(k.newAddress())
	first := k.makeKey(session)
	k.makeKey(session)
	_, err := k.accountClient.CreateKey(k.ctx, session, "")
	k.wantRefusal(err, http.StatusConflict, client.CodeKeyLimitReached)
	for range 2 {
		k.wantStatus(http.StatusNoContent, k.accountClient.RevokeKey(k.ctx, session, first.ID))
	}
	_, err = k.accountClient.Usage(k.ctx, first.Secret)
	k.wantRefusal(err, http.StatusUnauthorized, client.CodeRevokedKey)
	k.makeKey(session)
	k.wantRefusal(k.accountClient.RevokeKey(k.ctx, session, "key_none"), http.StatusNotFound, "not_found")
}

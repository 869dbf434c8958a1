package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
)

// The paths of K1.
const (
	codesPath    = accountPath + "codes"
	sessionsPath = accountPath + "sessions"
	keysPath     = accountPath + "keys"
	usagePath    = accountPath + "usage"
)

// address is one that was not used before.
func (k *trial) address() string {
	k.serial++
	return fmt.Sprintf("kit-%d@%s", k.serial, k.options.Domain)
}

// call asks an account operation.
func (k *trial) call(method, path, token string, body any) *answer {
	r := request{method: method, target: path}
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			k.fatalf("encode %v: %v", body, err)
		}
		r.body = string(encoded)
	}
	if token != "" {
		r.header = []string{"Authorization", "Bearer " + token}
	}
	return k.send(r)
}

// want is call with the status that must come of it.
func (k *trial) want(status int, method, path, token string, body any) *answer {
	a := k.call(method, path, token, body)
	if a.status != status {
		k.fatalf("%s, want %d: %.300s", a, status, a.body)
	}
	return a
}

type emailBody struct {
	Email string `json:"email"`
}

type codeBody struct {
	Email string `json:"email"`
	Code  string `json:"code"`
}

type nameBody struct {
	Name string `json:"name,omitempty"`
}

// signIn goes from an address to a session.
func (k *trial) signIn(email string) string {
	k.want(http.StatusAccepted, http.MethodPost, codesPath, "", emailBody{email})
	a := k.want(http.StatusOK, http.MethodPost, sessionsPath, "", codeBody{email, k.code(email)})
	token := read[struct{ Data struct{ Token string } }](k, a).Data.Token
	if token == "" {
		k.fatalf("%s: no token", a)
	}
	return token
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

// newKey is a key with its secret.
type newKey struct{ ID, Secret, Status, Hint string }

func (k *trial) makeKey(session string) newKey {
	a := k.want(http.StatusCreated, http.MethodPost, keysPath, session, nameBody{"kit"})
	key := read[struct{ Data newKey }](k, a).Data
	if a.header.Get("Location") != keysPath+"/"+key.ID {
		k.errorf("%s: Location is %q, the id %q", a, a.header.Get("Location"), key.ID)
	}
	return key
}

var keyShape = regexp.MustCompile(`^[a-z0-9]+_[a-z0-9]+_[0-9A-Za-z]{36}$`)

func checkAccountFlow(k *trial) {
	session := k.signIn(k.address())
	key := k.makeKey(session)
	if !keyShape.MatchString(key.Secret) || key.Hint == "" || key.Secret[len(key.Secret)-len(key.Hint):] != key.Hint {
		k.errorf("a key has the hint %q and not the shape of K4", key.Hint)
	}
	list := read[struct{ Data []newKey }](k, k.want(http.StatusOK, http.MethodGet, keysPath, session, nil))
	if len(list.Data) != 1 || list.Data[0].ID != key.ID || list.Data[0].Secret != "" || list.Data[0].Status != "active" {
		k.errorf("the list of keys: %d, and the secret is shown once only", len(list.Data))
	}
	k.want(http.StatusOK, http.MethodGet, usagePath, session, nil)
	k.want(http.StatusOK, http.MethodGet, usagePath, key.Secret, nil)
	k.mustRefuse(k.call(http.MethodGet, keysPath, key.Secret, nil), http.StatusUnauthorized, "invalid_session")
	k.mustRefuse(k.call(http.MethodGet, keysPath, "", nil), http.StatusUnauthorized, "invalid_session")
	k.mustRefuse(k.call(http.MethodPost, codesPath, "", emailBody{"no address"}), http.StatusBadRequest, "invalid_parameters")
	a := k.send(request{method: http.MethodPost, target: codesPath, body: `{"email":"x@` + k.options.Domain + `"}`, header: []string{"Content-Type", "text/plain"}})
	k.mustRefuse(a, http.StatusUnsupportedMediaType, "unsupported_media_type")
	k.want(http.StatusNoContent, http.MethodDelete, sessionsPath, session, nil)
	k.mustRefuse(k.call(http.MethodGet, keysPath, session, nil), http.StatusUnauthorized, "invalid_session")
}

func checkCodes(k *trial) {
	email := k.address()
	k.want(http.StatusAccepted, http.MethodPost, codesPath, "", emailBody{email})
	good := k.code(email)
	wrong := "0" + good[1:]
	if wrong == good {
		wrong = "1" + good[1:]
	}
	k.mustRefuse(k.call(http.MethodPost, sessionsPath, "", codeBody{email, wrong}), http.StatusUnauthorized, "invalid_code")
	k.mustRefuse(k.call(http.MethodPost, sessionsPath, "", codeBody{k.address(), good}), http.StatusUnauthorized, "invalid_code")
	k.want(http.StatusOK, http.MethodPost, sessionsPath, "", codeBody{email, good})
	k.mustRefuse(k.call(http.MethodPost, sessionsPath, "", codeBody{email, good}), http.StatusUnauthorized, "invalid_code")
	voided := k.address()
	k.want(http.StatusAccepted, http.MethodPost, codesPath, "", emailBody{voided})
	good = k.code(voided)
	for i := range 5 {
		k.mustRefuse(k.call(http.MethodPost, sessionsPath, "", codeBody{voided, fmt.Sprintf("%d%s", (int(good[0]-'0')+1+i)%10, good[1:])}), http.StatusUnauthorized, "invalid_code")
	}
	k.mustRefuse(k.call(http.MethodPost, sessionsPath, "", codeBody{voided, good}), http.StatusUnauthorized, "invalid_code")
}

func checkSecondCode(k *trial) {
	email := k.address()
	k.want(http.StatusAccepted, http.MethodPost, codesPath, "", emailBody{email})
	k.mustRefuse(k.call(http.MethodPost, codesPath, "", emailBody{email}), http.StatusTooManyRequests, "code_requested_too_soon")
}

func checkTwoKeys(k *trial) {
	session := k.signIn(k.address())
	first := k.makeKey(session)
	k.makeKey(session)
	k.mustRefuse(k.call(http.MethodPost, keysPath, session, nameBody{}), http.StatusConflict, "key_limit_reached")
	for range 2 {
		k.want(http.StatusNoContent, http.MethodDelete, keysPath+"/"+first.ID, session, nil)
	}
	k.mustRefuse(k.call(http.MethodGet, usagePath, first.Secret, nil), http.StatusUnauthorized, "revoked_key")
	k.makeKey(session)
	k.mustRefuse(k.call(http.MethodDelete, keysPath+"/key_none", session, nil), http.StatusNotFound, "not_found")
}

func checkNoEvents(k *trial) {
	for _, path := range []string{"/v1/events", "/v1/webhooks", "/v1/notifications", "/v1/rates/stream"} {
		k.refused(path, http.StatusNotFound, "not_found")
	}
}

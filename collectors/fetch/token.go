package fetch

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

const (
	tokenPageBytesMax = 64 << 10
	tokenBytesMax     = 8 << 10
	tokenLifeDefault  = 5 * time.Minute  // of a token without a lifetime from the server
	tokenLifeMax      = 24 * time.Hour   // also keeps the sum of times from overflowing
	tokenMargin       = 30 * time.Second // in this time before its end a token is not used
	// gatewayPause is the time between two requests to a site with OAuth2. Gateways of banks allow one request a second.
	gatewayPause = 1200 * time.Millisecond
)

// accessToken is a token of a source (OAuth2). It is kept in memory only.
type accessToken struct {
	text       string
	obtainedAt time.Time
	life       time.Duration
}

// usableAt reports whether the token may be used. If the clock was set back, its age is unknown.
func (t accessToken) usableAt(now time.Time) bool {
	age := now.Sub(t.obtainedAt)
	return t.text != "" && age >= 0 && age < t.life-tokenMargin
}

// token returns the source's token. It requests a new one if there is none, or the old one has expired or was refused.
func (s *session) token(ctx context.Context, clientID, refused string) (string, *fetchError) {
	value, _ := s.client.tokens.Load(s.definition.ID)
	token, _ := value.(accessToken)
	if !token.usableAt(s.client.config.Clock()) || token.text == refused {
		var fetchErr *fetchError
		if token, fetchErr = s.requestToken(ctx, clientID); fetchErr != nil {
			return "", fetchErr
		}
		s.client.tokens.Store(s.definition.ID, token)
	}
	s.secrets.add(token.text)
	return token.text, nil
}

// requestToken asks the token endpoint for a token, with the client-credentials grant (RFC 6749, section 4.4).
func (s *session) requestToken(ctx context.Context, clientID string) (accessToken, *fetchError) {
	oauth := s.definition.OAuth2
	clientSecret, fetchErr := s.secret(oauth.ClientSecret)
	if fetchErr != nil {
		return accessToken{}, fetchErr
	}
	address, err := url.Parse(oauth.URL)
	if err != nil || !source.MayCarrySecret(address, s.definition.Proxy) {
		return accessToken{}, newFetchError(source.Internal, "%q is not a protected web address; correct the definition", oauth.URL).withCause(err)
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {clientSecret}}
	if oauth.Scope != "" {
		form.Set("scope", oauth.Scope)
	}
	req := plannedRequest{
		method: http.MethodPost, url: address, header: s.header("application/json"), body: form.Encode(), limit: tokenPageBytesMax, isToken: true,
	}
	req.header.Set("Content-Type", "application/x-www-form-urlencoded")
	if oauth.ClientIDHeader != "" {
		req.header.Set(oauth.ClientIDHeader, clientID)
	}
	resp, fetchErr := s.doWithRetries(ctx, req)
	if fetchErr != nil {
		return accessToken{}, s.explainTokenRefusal(fetchErr)
	}
	return readToken(resp)
}

// readToken reads the response of a token endpoint (RFC 6749, section 5.1).
func readToken(resp *rawResponse) (accessToken, *fetchError) {
	var answer struct {
		Token     string          `json:"access_token"`
		Type      string          `json:"token_type"`
		ExpiresIn json.RawMessage `json:"expires_in"` // a number; some servers send it as a text
	}
	err := json.Unmarshal(resp.body, &answer)
	isVisible := !strings.ContainsFunc(answer.Token, func(r rune) bool { return r <= ' ' || r > '~' })
	switch {
	case err != nil || answer.Token == "" || len(answer.Token) > tokenBytesMax || !isVisible:
		return accessToken{}, resp.errorf(source.WrongContent, "the response has no access_token")
	case answer.Type != "" && !strings.EqualFold(answer.Type, "bearer"):
		return accessToken{}, resp.errorf(source.WrongContent, "the token is of the type %s, want Bearer", shorten(answer.Type))
	}
	life := tokenLifeDefault
	if seconds, err := strconv.ParseInt(strings.Trim(string(answer.ExpiresIn), `"`), 10, 64); err == nil && seconds > 0 {
		life = tokenLifeMax
		if seconds < int64(tokenLifeMax/time.Second) {
			life = time.Duration(seconds) * time.Second
		}
	}
	return accessToken{text: answer.Token, obtainedAt: resp.receivedAt, life: life}, nil
}

// explainTokenRefusal names the refused secrets. Status 400 means invalid credentials too (RFC 6749, section 5.2).
func (s *session) explainTokenRefusal(fetchErr *fetchError) *fetchError {
	if fetchErr.status == http.StatusBadRequest {
		fetchErr.status = http.StatusUnauthorized
	}
	return s.explainRefusal(fetchErr)
}

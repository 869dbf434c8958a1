package fetch

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// hiddenBytesMin is the minimum length of a secret that is removed from responses. A shorter text may be a part of a
// price.
const hiddenBytesMin = 8

const hidden = "[redacted]"

// secretTexts removes the secrets of a session from a server's responses. A server may repeat a request's header in its
// response, and the secret would get into logs and archives.
type secretTexts struct {
	texts    []string          // longest first, because a secret may begin with another one
	replacer *strings.Replacer // nil = nothing to replace
}

// add adds a secret: as it is, as in a form, and as in JSON with escaped slashes.
func (t *secretTexts) add(text string) {
	if len(text) < hiddenBytesMin {
		return
	}
	t.texts = append(t.texts, text, url.QueryEscape(text), strings.ReplaceAll(text, "/", `\/`))
	slices.SortFunc(t.texts, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, text := range t.texts {
		pairs = append(pairs, text, hidden)
	}
	t.replacer = strings.NewReplacer(pairs...)
}

func (t *secretTexts) redact(text string) string {
	if t.replacer == nil {
		return text
	}
	return t.replacer.Replace(text)
}

func (t *secretTexts) redactHeader(header http.Header) {
	for _, values := range header {
		for i := range values {
			values[i] = t.redact(values[i])
		}
	}
}

// send sends a request, with the definition's secret or token. If the server refuses the token, send tries a new one
// once, because the token may have been revoked.
func (s *session) send(ctx context.Context, req plannedRequest) (*rawResponse, *fetchError) {
	if !s.hasSecret() {
		return s.doWithRetries(ctx, req)
	}
	token, fetchErr := s.authorize(ctx, &req, "")
	if fetchErr != nil {
		return nil, fetchErr
	}
	resp, fetchErr := s.doWithRetries(ctx, req)
	if fetchErr != nil && fetchErr.status == http.StatusUnauthorized && s.definition.OAuth2 != nil {
		if _, fetchErr := s.authorize(ctx, &req, token); fetchErr != nil {
			return nil, fetchErr
		}
		resp, fetchErr = s.doWithRetries(ctx, req)
	}
	if fetchErr != nil {
		return nil, s.explainRefusal(fetchErr)
	}
	return resp, nil
}

func (s *session) hasSecret() bool { return s.definition.Secret != nil || s.definition.OAuth2 != nil }

// authorize adds the secret or the token to a request and returns the token. refused is a refused token, which is not
// used again.
func (s *session) authorize(ctx context.Context, req *plannedRequest, refused string) (token string, fetchErr *fetchError) {
	if !source.MayCarrySecret(req.url, s.definition.Proxy) {
		return "", newFetchError(source.Internal, "a secret is never sent to %s, which is not protected; correct the definition", shorten(req.url.String()))
	}
	if key := s.definition.Secret; key != nil {
		text, fetchErr := s.secret(key.Name)
		if fetchErr != nil {
			return "", fetchErr
		}
		req.header.Set(key.Header, strings.TrimSpace(key.Scheme+" "+text))
		return "", nil
	}
	oauth := s.definition.OAuth2
	id, fetchErr := s.secret(oauth.ClientID)
	if fetchErr == nil {
		token, fetchErr = s.token(ctx, id, refused)
	}
	if fetchErr != nil {
		return "", fetchErr
	}
	req.header.Set("Authorization", "Bearer "+token)
	if oauth.ClientIDHeader != "" {
		req.header.Set(oauth.ClientIDHeader, id)
	}
	return token, nil
}

// secret returns a secret by name, and adds it to the texts removed from responses.
func (s *session) secret(name string) (string, *fetchError) {
	text := s.client.config.Secret(name)
	if text == "" {
		return "", newFetchError(source.Blocked, "the source needs the secret %s, which is missing: a file of this name in the directory of --source-secrets", name)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", newFetchError(source.Blocked, "the secret %s is not a word of ASCII characters; correct its file", name)
	}
	s.secrets.add(text)
	return text, nil
}

// explainRefusal names the secret in the failure if the server has refused it.
func (s *session) explainRefusal(fetchErr *fetchError) *fetchError {
	if fetchErr.status == http.StatusUnauthorized || fetchErr.status == http.StatusForbidden {
		fetchErr.failure.Kind = source.Blocked
		fetchErr.failure.Detail += "; check the secret " + strings.Join(s.definition.SecretNames(), " and the secret ") + ", and what it gives access to"
	}
	return fetchErr
}

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

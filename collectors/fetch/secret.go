package fetch

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

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

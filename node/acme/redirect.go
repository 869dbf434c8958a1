package acme

import (
	"io"
	"net/http"
)

// setToken sets the response to a challenge. An empty response removes it.
func (m *Manager) setToken(path, response string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if response == "" {
		delete(m.tokens, path)
		return
	}
	m.tokens[path] = response
}

func (m *Manager) token(path string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tokens[path]
}

// ServeHTTP serves plain HTTP: it answers challenges of the authority, and redirects other requests to the same path of
// the name over HTTPS. A request with an API key is refused instead: the key was sent unencrypted, and a redirect would
// hide this.
func (m *Manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch response := m.token(r.URL.Path); {
	case response != "":
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, response) // the authority tries again
	case r.Header.Get("Authorization") != "":
		http.Error(w, "This key was sent without encryption: revoke it, and send keys only to https://"+m.config.Name, http.StatusForbidden)
	default:
		target := "https://" + m.config.Name
		if r.URL.Path != "*" { // OPTIONS * is about the server as a whole
			target += r.URL.RequestURI()
		}
		http.Redirect(w, r, target, http.StatusPermanentRedirect) //nolint:gosec // G710: always to m.config.Name
	}
}

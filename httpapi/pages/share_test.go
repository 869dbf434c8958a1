package pages_test

import (
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
)

// TestShare_Embed: the card is there without data too; an unknown currency has none.
func TestShare_Embed(t *testing.T) {
	w := newFakeService(t)
	h := serve(w.config())
	w.err = &engine.Error{Code: engine.CodeDataUnavailable}
	for path, want := range map[string]int{"/embed/eur": 200, "/embed/zzz": 404} {
		if got := get(t, h, path).Code; got != want {
			t.Errorf("%s without data: %d, want %d", path, got, want)
		}
	}
}

// TestShare_NextCollection: without rates the page says when sources are read next, and which failed.
func TestShare_NextCollection(t *testing.T) {
	w := newFakeService(t)
	w.err = &engine.Error{Code: engine.CodeDataUnavailable, RetryAfter: time.Second}
	config := w.config()
	var next time.Time
	config.Collection = func() (time.Time, []string) { return next, []string{"colon-web"} }
	h := serve(config)
	for _, c := range []struct {
		next time.Time
		want string
	}{
		{w.now.Add(time.Hour), "La próxima consulta es a las 1:00\u00a0p.\u00a0m.<"},
		{w.now.Add(24 * time.Hour), "La próxima consulta es el 22 nov a las 12:00\u00a0p.\u00a0m.<"},
	} {
		next, w.now = c.next, w.now.Add(time.Second)
		mustContain(t, get(t, h, "/").Body.String(), c.want, "No se pudieron leer:</p><ul><li>Sitio web de Banco Colón</li>")
	}
}

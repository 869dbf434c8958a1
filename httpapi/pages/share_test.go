package pages_test

import (
	"bytes"
	"image/png"
	"net/http"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/pages"
)

// TestShare_Picture decodes the picture of the best rates. It is drawn once a minute, and only with a public URL.
func TestShare_Picture(t *testing.T) {
	w := newFakeService(t)
	config := w.config()
	h := serve(config)
	first := get(t, h, "/share/usd.png")
	picture, err := png.Decode(bytes.NewReader(first.Body.Bytes()))
	if err != nil || picture.Bounds().Dx() != 1200 || picture.Bounds().Dy() != 630 || first.Header().Get("Content-Type") != "image/png" {
		t.Fatalf("%v, %v", err, first.Header())
	}
	dark := 0 // pixels of the large numbers
	for x := range 1200 {
		for y := 230; y < 350; y++ {
			if r, _, _, _ := picture.At(x, y).RGBA(); r < 0x4000 {
				dark++
			}
		}
	}
	if dark < 5000 {
		t.Errorf("the numbers have %d pixels", dark)
	}
	asked := w.queries.Load()
	w.book("USD").SourceQuotes[1].Sell = pages.MustDecimal(t, "59.05")
	w.now = w.now.Add(59 * time.Second)
	if again := get(t, h, "/share/usd.png"); !bytes.Equal(again.Body.Bytes(), first.Body.Bytes()) || w.queries.Load() != asked {
		t.Error("it was drawn again within the minute")
	}
	w.now = w.now.Add(time.Second)
	if again := get(t, h, "/share/usd.png"); bytes.Equal(again.Body.Bytes(), first.Body.Bytes()) {
		t.Error("it is older than a minute")
	}
	w.err = &engine.Error{Code: engine.CodeDataUnavailable}
	config.PublicURL = ""
	private := serve(config)
	for path, want := range map[string]int{"/en/share/eur.png": 200, "/share/usd": 404, "/share/zzz.png": 404, "/embed/eur": 200, "/embed/zzz": 404} {
		if got := get(t, h, path).Code; got != want {
			t.Errorf("%s without data: %d, want %d", path, got, want)
		}
	}
	if got := get(t, private, "/share/usd.png").Code; got != http.StatusNotFound {
		t.Errorf("without a public URL: %d", got)
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

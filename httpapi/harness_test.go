package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
)

// TestHarness: the Date header is the clock's, faults are planted behind the route, and go around what was read.
func TestHarness(t *testing.T) {
	plant, around := (*engine.Error)(nil), 0
	g := newGated(t, func(c *Config) {
		c.Harness = &Harness{Around: func(next fasthttp.RequestHandler) fasthttp.RequestHandler {
			return func(ctx *fasthttp.RequestCtx) {
				around++
				if plant != nil {
					Plant(ctx, plant)
				}
				next(ctx)
			}
		}}
	})
	ask := func(target string) (status int, dates string) {
		client, server := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- g.server.ServeConn(server) }()
		if _, err := client.Write([]byte("GET " + target + " HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		client.Close()
		return res.StatusCode, strings.Join(res.Header.Values("Date"), "|")
	}
	for _, c := range []struct {
		target string
		plant  *engine.Error
		status int
	}{
		{"/v1/rates", nil, 200}, {"/v1/nothing", &engine.Error{Code: engine.CodeOverloaded}, 404}, {"/v1/rates", &engine.Error{Code: engine.CodeOverloaded}, 503},
		{"/v1/rates", &engine.Error{Code: engine.CodeInternalError}, 500}, {"/v1/rates", &engine.Error{Code: engine.CodeRateLimited}, 429},
		{"/v1/account/keys", nil, 401},
	} {
		plant = c.plant
		if status, dates := ask(c.target); status != c.status || dates != fakeNow().UTC().Format(http.TimeFormat) {
			t.Errorf("%s: %d, want %d; Date %q", c.target, status, c.status, dates)
		}
	}
	if around != 6 {
		t.Errorf("around %d of 6", around)
	}
}

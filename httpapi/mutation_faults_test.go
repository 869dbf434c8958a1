//go:build faults

package httpapi

import (
	"bytes"
	"testing"

	"github.com/valyala/fasthttp"
)

const million = 1_000_000

// TestFaultsO7_Mutations spoils good requests at random, cuts them anywhere, and judges every byte of the answers. A
// crash or a hang ends the test itself.
func TestFaultsO7_Mutations(t *testing.T) {
	if _, answers := checkExpress(t, million, newSpoiltCase); answers < million/2 {
		t.Errorf("%d answers to %d mutants", answers, million)
	}
}

// TestFaultsO7_Control plants what the run above is there for; each must be found.
func TestFaultsO7_Control(t *testing.T) {
	for name, wrong := range map[string]fasthttp.RequestHandler{
		"5xx":   func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(fasthttp.StatusBadGateway) },
		"body":  func(ctx *fasthttp.RequestCtx) { ctx.Response.SetBodyString("oops") },
		"no id": func(ctx *fasthttp.RequestCtx) { ctx.Response.Header.Del(headerRequestID) },
	} {
		w, found := newTwoWays(t, false), false
		w.around(func(ctx *fasthttp.RequestCtx, next fasthttp.RequestHandler) {
			if next(ctx); bytes.IndexByte(ctx.RequestURI(), '%') >= 0 {
				wrong(ctx)
			}
		})
		for number := uint64(0); number < 4000 && !found; number++ {
			w.play(t, newSpoiltCase(1, number), nil)
			found = framingProblem(w.out, w.methods) != ""
		}
		if !found {
			t.Errorf("%s is not found", name)
		}
	}
}

// TestFaultsF1_ExpressSameAnswers plays a million requests past the express path and through it: ten minutes.
func TestFaultsF1_ExpressSameAnswers(t *testing.T) { checkExpress(t, million, newExpressCase) }

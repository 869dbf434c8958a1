package httpapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/engine"
)

// documentCases are answers that the OpenAPI document shows or names, and that no other golden file has.
func documentCases() []gatedCase {
	get := func(name, target string, arrange func(*gated)) gatedCase {
		return gatedCase{name, exchange{method: "GET", target: target}, arrange}
	}
	told := func(conditions ...engine.Condition) func(*gated) {
		return func(g *gated) { g.server.health = toldHealth(conditions) }
	}
	late := engine.Condition{Name: "snapshot", State: "late", Since: fakeNow().Add(-time.Hour), Detail: "The newest snapshot is old; a start takes longer."}
	empty := engine.Condition{Name: "data", State: "empty", Down: true, Since: fakeNow().Add(-time.Minute), Detail: "Nothing was ever published."}
	overloaded := func(g *gated) {
		g.gate.fault = &engine.Error{Code: engine.CodeOverloaded, Message: "too many requests at the moment", RetryAfter: time.Second}
	}
	return []gatedCase{
		get("currencies-503", "/v1/currencies", overloaded),
		get("institutions-503", "/v1/institutions", overloaded),
		get("institution-503", "/v1/institutions/bhd", overloaded),
		get("rates-200", "/v1/rates?currency=USD&institution=bhd&channel=digital", nil),
		get("convert-200", "/v1/convert?currency=USD&operation=buy&amount=250.50&limit=1", nil),
		get("history-200", "/v1/rates/history?currency=USD&institution=bhd&channel=digital&limit=2", nil),
		get("best-200", "/v1/rates/best?currency=USD&operation=buy&limit=1", nil),
		get("institution-200", "/v1/institutions/banreservas", nil),
		get("livez-200", livePath, nil),
		get("healthz-200", liveOtherPath, nil),
		get("readyz-200", readyPath, told(engine.Well("log"))),
		get("readyz-200-degraded", readyPath, told(late)),
		get("readyz-503", readyPath, told(empty)),
		{"sessions-post-429", accountGood()["sessions-post"], func(g *gated) {
			g.accounts.fault = &engine.Error{Code: engine.CodeRateLimited, Message: "Too many attempts; try again later.", RetryAfter: time.Hour}
		}},
	}
}

func TestGolden_Document(t *testing.T) { playGolden(t, "document", documentCases()) }

// tardy is what the library gives when a request does not arrive in time.
type tardy struct{ error }

func (tardy) Timeout() bool   { return true }
func (tardy) Temporary() bool { return true }

// TestGolden_Unread: what the server answers when it can't read a request to its end.
func TestGolden_Unread(t *testing.T) {
	files := map[string]func(t *testing.T) []byte{}
	for name, err := range map[string]error{
		"400": fmt.Errorf("a line that is none"), "408": tardy{fmt.Errorf("a timeout")}, "413": fasthttp.ErrBodyTooLarge, "431": &fasthttp.ErrSmallBuffer{},
	} {
		files[name] = func(t *testing.T) []byte {
			g := newGated(t, nil)
			var ctx fasthttp.RequestCtx
			ctx.Request.Header.SetMethod("GET")
			ctx.Request.SetRequestURI("/v1/rates")
			g.server.refuseUnread(&ctx, err)
			c := gatedCase{name, exchange{method: "GET", target: "/v1/rates"}, nil}
			return c.text(written(t, &ctx, "GET"))
		}
	}
	holdGolden(t, "unread", files)
}

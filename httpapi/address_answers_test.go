package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/httpapi/apitest"
)

// TestS3_Node: known, unknown and throttled addresses get the same answers.
func TestS3_Node(t *testing.T) {
	t.Parallel()
	srv := apitest.Start(t, apitest.Seed("standard"))
	srv.Key("luz@example.do")
	srv.Clock.Advance(2 * time.Minute)
	ask := func(target, email, more string) string {
		t.Helper()
		res, err := srv.Client.Post(srv.URL+target, "application/json", strings.NewReader(`{"email":"`+email+`"`+more+`}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		res.Header.Del("X-Request-Id")
		text, _, _ := strings.Cut(string(body), `"requestId"`)
		return fmt.Sprint(res.StatusCode, res.Header, text)
	}
	for _, step := range []struct {
		target, more string
		status       int
	}{
		{"/v1/account/codes", "", http.StatusAccepted},
		{"/v1/account/codes", "", http.StatusTooManyRequests},
		{"/v1/account/sessions", `,"code":"00000000"`, http.StatusUnauthorized},
		{"/v1/account/codes", "", http.StatusTooManyRequests},
	} {
		known, unknown := ask(step.target, "luz@example.do", step.more), ask(step.target, "sol@example.do", step.more)
		if known != unknown || !strings.HasPrefix(known, fmt.Sprint(step.status)) {
			t.Errorf("%s: known %s, unknown %s", step.target, known, unknown)
		}
	}
}

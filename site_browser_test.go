package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBrowser_SignUp: somebody with a real browser gets a key on the pages, copies it, uses it, and finds it nowhere again.
func TestBrowser_SignUp(t *testing.T) {
	t.Parallel()
	const email = "ana@example.com"
	b, box := openBrowser(t), newMailbox(t)
	anyone := startLimited(t, limitedArgs(t.TempDir(), box))
	node := anyone.node
	send := func(path string, typed ...string) {
		t.Helper()
		for i := 0; i < len(typed); i += 2 {
			b.run(`document.getElementById("` + typed[i] + `").value = "` + typed[i+1] + `"`)
		}
		b.loading(func() { b.run(`document.querySelector('form[action$="` + path + `"]').requestSubmit()`) })
	}
	b.open(node.url + "/en/account")
	send("/codes", "email", email)
	send("/sessions", "code", wrong(box.code(email)))
	if got := b.run(`document.getElementById("code-fault").textContent`); !strings.Contains(got, "not valid") {
		t.Errorf("a wrong code: %q", got)
	}
	b.open(node.url + "/account") // the other language, another address
	send("/codes", "email", "eva@example.com")
	send("/sessions", "code", box.code("eva@example.com"))
	send("/keys", "name", "servidor")

	b.ask("Browser.grantPermissions", map[string]any{"permissions": []string{"clipboardReadWrite", "clipboardSanitizedWrite"}, "origin": node.url}, nil)
	b.run(`document.querySelector('button[data-copy="secret"]').click()`)
	b.until(`document.querySelector('button[data-copy="secret"]').textContent === "Copiado"`)
	secret := b.run(`navigator.clipboard.readText()`)
	if shown := b.run(`document.getElementById("secret").textContent`); shown != secret || !keyPattern.MatchString(secret) {
		t.Errorf("%q is shown, %q was copied", shown, secret)
	}
	anyone.with(secret).must("GET", countedPath, "", http.StatusOK, "")

	b.loading(func() { b.ask("Page.reload", nil, nil) }) // sends the form again
	if got := b.run(`document.documentElement.outerHTML`); keyPattern.MatchString(got) || !strings.Contains(got, "no se creó otra clave") {
		t.Errorf("loaded again:\n%s", got)
	}
	if got := b.run(`JSON.stringify([localStorage.length, sessionStorage.length, document.cookie, location.href.includes("tasard_")])`); got != `[0,0,"",false]` {
		t.Errorf("what the page can read: %s", got)
	}
	send("/revoke")
	anyone.with(secret).must("GET", usagePath, "", http.StatusUnauthorized, "revoked_key")
	send("/signout")
	b.clean(node)
}

// TestBrowser_Reference: Swagger UI draws the contract under the policy of the pages, and a request that is tried goes to the node.
func TestBrowser_Reference(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	file := writeFile(t, "observations.csv", header+observation(5, "57.50", "60.85"))
	node := start(t, realNow, serveArgs(t.TempDir(), "--import", file)...).listening()
	node.await("imported")
	b.open(node.url + "/docs")
	b.open(node.url + "/docs/reference")
	const best = `document.getElementById("operations-Rates-listBestRates")`
	b.until(best)
	b.run(best + `.querySelector(".opblock-summary-control").click()`)
	b.until(best + `.querySelector(".execute")`)
	b.run(best + `.querySelector(".execute").click()`)
	b.until(best + `.querySelector(".live-responses-table td.response-col_status")`)
	got := b.run(best + `.querySelector(".live-responses-table").textContent`)
	if !strings.Contains(got, `"60.85"`) || !strings.Contains(got, `"operation"`) {
		t.Errorf("the answer is %s", got)
	}
	b.clean(node)
}

// TestBrowser_Control: what the policy of the pages forbids is seen, and so is a request to somebody else.
func TestBrowser_Control(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	defer elsewhere.Close()
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; img-src *")
		if _, err := w.Write([]byte(`<p style="color: red">x</p><script>alert(1)</script><img src="` + elsewhere.URL + `/x.png">`)); err != nil {
			t.Error(err)
		}
	}))
	defer bad.Close()
	b.open(bad.URL)
	b.run("1") // what was said before its answer is noted
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.problems) < 2 || !strings.Contains(strings.Join(b.requests, " "), elsewhere.URL+"/x.png") {
		t.Errorf("problems %q, requests %q", b.problems, b.requests)
	}
}

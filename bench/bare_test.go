package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/valyala/fasthttp"
)

// serverFields are the fields of the HTTP server that a function of a file makes, without those that set up no connection.
func serverFields(t *testing.T, path, function string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := regexp.MustCompile(`(?ms)^func [^\n]*\b` + function + `\(.*?^}`).FindString(string(text))
	var fields []string
	for _, found := range regexp.MustCompile(`(?m)^\t+(\w+):\s`).FindAllStringSubmatch(whole, -1) {
		if name := found[1]; name != "ErrorHandler" && name != "Logger" {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	return fields
}

// constantsIn are the constants of a folder that have a default.
func constantsIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^\s*(?:const )?(\w+Default)\s+= ([^/\n]*[^/\s])`).FindAllStringSubmatch(string(text), -1) {
			constants[found[1]] = found[2]
		}
	}
	return constants
}

// TestBare_HasTheNodesSettings holds the bare server to the node's, so that nobody tunes one and forgets the other.
func TestBare_HasTheNodesSettings(t *testing.T) {
	node, bare := serverFields(t, "../httpapi/server.go", "newHTTP"), serverFields(t, "bare.go", "bareServer")
	if !slices.Equal(node, bare) || len(bare) < 10 {
		t.Errorf("the node's server has %v, the bare one %v", node, bare)
	}
	ours, nodes := constantsIn(t, "."), constantsIn(t, "../httpapi")
	for name, value := range ours {
		if nodes[name] != value {
			t.Errorf("%s is %q, the node's %q", name, value, nodes[name])
		}
	}
	if len(ours) != 7 {
		t.Errorf("the bare server has the settings %v, want 7", ours)
	}
}

// TestBare_AllocatesNothing: a yardstick that makes garbage would flatter the node.
func TestBare_AllocatesNothing(t *testing.T) {
	raw := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nETag: W/\"x\"\r\n\r\n{}")
	for _, replies := range [][]reply{
		{{Target: "/a", Raw: raw}},
		{{Target: "/a", Raw: raw}, {Target: "/b?amount=", Amounts: true, Raw: raw}},
	} {
		handler, err := bareHandler(replies)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range []string{"/a", "/b?amount=17.05"} {
			var ctx fasthttp.RequestCtx
			ctx.Request.SetRequestURI(target)
			handler(&ctx)
			if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 200 || got != "{}" {
				t.Errorf("%s: %d %s", target, ctx.Response.StatusCode(), got)
			}
			if count := testing.AllocsPerRun(100, func() { handler(&ctx) }); count != 0 {
				t.Errorf("%s costs %v allocations", target, count)
			}
		}
	}
	for _, replies := range [][]reply{{{Target: "/", Raw: raw}, {Target: "/", Raw: raw}}, {{Target: "/"}}} {
		if _, err := bareHandler(replies); err == nil {
			t.Errorf("%d replies are taken: two to one target, or one of nothing", len(replies))
		}
	}
}

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/valyala/fasthttp"
)

// settingsIn returns the constants of a folder whose names end in Default, and the fields of the HTTP server that a
// function makes, without those that set up no connection.
func settingsIn(t *testing.T, folder, function string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(folder + "/*.go")
	noError(t, err)
	settings := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		noError(t, err)
		maker := regexp.MustCompile(`(?ms)^func [^\n]*\b` + function + `\(.*?^}`).FindString(string(text))
		for _, found := range regexp.MustCompile(`(?m)^\t+(\w+):\s`).FindAllStringSubmatch(maker, -1) {
			settings[found[1]] = "set"
		}
		for _, found := range regexp.MustCompile(`(?m)^\s*(?:const )?(\w+Default)\s+= ([^/\n]*[^/\s])`).FindAllStringSubmatch(string(text), -1) {
			settings[found[1]] = found[2]
		}
	}
	delete(settings, "ErrorHandler")
	delete(settings, "ExpectHandler")
	delete(settings, "HeaderReceived")
	delete(settings, "Logger")
	return settings
}

// TestBare_HasTheNodesSettings compares the bare server's settings with the node's, so that neither is tuned without
// the other.
func TestBare_HasTheNodesSettings(t *testing.T) {
	node, bare := settingsIn(t, "../httpapi", "newHTTP"), settingsIn(t, ".", "bareServer")
	delete(node, "writeBufferBytesDefault") // the node does not use it for bodies
	for name, value := range bare {
		if name != "writeBufferBytesDefault" && node[name] != value {
			t.Errorf("%s is %q, the node's %q", name, value, node[name])
		}
	}
	for name, value := range node {
		if value == "set" && bare[name] == "" {
			t.Errorf("%s of the node's server is not set", name)
		}
	}
	if len(bare) != 20 {
		t.Errorf("the bare server has %d settings, want 20: %v", len(bare), bare)
	}
}

// TestBare_AllocatesNothing: a baseline that makes garbage would flatter the node.
func TestBare_AllocatesNothing(t *testing.T) {
	handler, err := bareHandler([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nETag: W/\"x\"\r\n\r\n{}"))
	noError(t, err)
	var ctx fasthttp.RequestCtx
	handler(&ctx)
	if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 200 || got != "{}" {
		t.Errorf("%d %s", ctx.Response.StatusCode(), got)
	}
	if count := testing.AllocsPerRun(100, func() { handler(&ctx) }); count != 0 {
		t.Errorf("an answer costs %v allocations", count)
	}
}

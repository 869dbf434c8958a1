package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "make openapi.json of openapi.yaml")

// asJSON converts a YAML node to JSON, and keeps the order of fields.
func asJSON(t *testing.T, out *bytes.Buffer, node *yaml.Node) {
	t.Helper()
	switch node.Kind {
	case yaml.DocumentNode:
		asJSON(t, out, node.Content[0])
	case yaml.MappingNode:
		out.WriteByte('{')
		for i := 0; i < len(node.Content); i += 2 {
			out.WriteString(strings.Repeat(",", min(i, 1)))
			out.Write(encode(node.Content[i].Value))
			out.WriteByte(':')
			asJSON(t, out, node.Content[i+1])
		}
		out.WriteByte('}')
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range node.Content {
			out.WriteString(strings.Repeat(",", min(i, 1)))
			asJSON(t, out, item)
		}
		out.WriteByte(']')
	case yaml.ScalarNode:
		var value any
		if err := node.Decode(&value); err != nil {
			t.Fatalf("line %d: %v", node.Line, err)
		}
		switch value.(type) {
		case nil, string, bool, int, int64:
		default:
			t.Fatalf("line %d: %q is a %T in YAML; put it in quotes", node.Line, node.Value, value)
		}
		out.Write(encode(value))
	default:
		t.Fatalf("line %d: anchors and aliases don't reach every tool; write it out", node.Line)
	}
}

func yamlAsJSON(t *testing.T, text []byte) string {
	t.Helper()
	var node yaml.Node
	var value any // refuses duplicate fields
	var compact, indent bytes.Buffer
	if err := errors.Join(yaml.Unmarshal(text, &node), yaml.Unmarshal(text, &value)); err != nil {
		t.Fatal(err)
	}
	asJSON(t, &compact, &node)
	if err := json.Indent(&indent, compact.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	return indent.String() + "\n"
}

// TestJSON_IsTheYAML checks that both forms are the same document: OpenAPI 3.1.0, contract version 1.0.0.
func TestJSON_IsTheYAML(t *testing.T) {
	want := yamlAsJSON(t, []byte(yamlText))
	if *update {
		if err := os.WriteFile("openapi.json", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != jsonText || !strings.Contains(want, `"openapi": "3.1.0"`) || !strings.Contains(want, `"version": "1.0.0"`) {
		t.Fatal("openapi.json is not what openapi.yaml says, or not of this version; generate it: go test ./httpapi/contract -update")
	}
}

// TestPublicURL checks that the URL is in every document, and that every file has its placeholder once.
func TestPublicURL(t *testing.T) {
	if strings.Count(yamlText, yamlServer) != 1 || strings.Count(jsonText, jsonServer) != 1 {
		t.Fatal("openapi.yaml or openapi.json has not just one server")
	}
	atAddress, atNone := testConfig("https://tasas.example/"), testConfig("")
	with, without := atAddress.documents(), atNone.documents()
	for i, document := range with {
		if !bytes.Contains(document.content().body.Plain(), []byte("https://tasas.example")) || bytes.Contains(document.content().body.Plain(), []byte("tasas.example//")) {
			t.Errorf("%s does not name the address, or with two slashes", document.path)
		}
		if bytes.Contains(document.content().body.Plain(), []byte(baseServer)) || bytes.Contains(without[i].content().body.Plain(), []byte(baseServer)) {
			t.Errorf("%s has %s left", document.path, baseServer)
		}
		if string(document.content().body.ETag()) == string(without[i].content().body.ETag()) {
			t.Errorf("%s: another body has the same tag", document.path)
		}
	}
	if yamlAsJSON(t, with[1].content().body.Plain()) != string(with[0].content().body.Plain()) {
		t.Error("with an address JSON and YAML differ")
	}
}

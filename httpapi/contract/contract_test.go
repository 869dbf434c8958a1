package contract

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "make openapi.json of openapi.yaml")
	flag.Parse()
	os.Exit(m.Run())
}

// asJSON is a YAML node as JSON, its fields in the order in which they were written.
func asJSON(t *testing.T, out *bytes.Buffer, node *yaml.Node) {
	t.Helper()
	switch node.Kind {
	case yaml.DocumentNode:
		asJSON(t, out, node.Content[0])
	case yaml.MappingNode:
		seen := map[string]bool{}
		out.WriteByte('{')
		for i := 0; i < len(node.Content); i += 2 {
			name := node.Content[i].Value
			if seen[name] {
				t.Fatalf("line %d: %s is there twice", node.Content[i].Line, name)
			}
			seen[name] = true
			separate(out, i > 0)
			out.Write(encode(name))
			out.WriteByte(':')
			asJSON(t, out, node.Content[i+1])
		}
		out.WriteByte('}')
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range node.Content {
			separate(out, i > 0)
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

func separate(out *bytes.Buffer, needed bool) {
	if needed {
		out.WriteByte(',')
	}
}

// TestJSON_IsTheYAML: both forms say the same, in the same order.
func TestJSON_IsTheYAML(t *testing.T) {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(yamlText), &node); err != nil {
		t.Fatal(err)
	}
	var compact, want bytes.Buffer
	asJSON(t, &compact, &node)
	if err := json.Indent(&want, compact.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	want.WriteByte('\n')
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile("openapi.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want.String() != jsonText {
		t.Fatal("openapi.json is not what openapi.yaml says; make it anew: go test ./httpapi/contract -update")
	}
}

// TestDocument_Versions: OpenAPI 3.1.0, contract version 1.0.0 (interface §9).
func TestDocument_Versions(t *testing.T) {
	var document struct {
		OpenAPI string
		Info    struct{ Version string }
	}
	if err := json.Unmarshal([]byte(jsonText), &document); err != nil || document.OpenAPI != "3.1.0" || document.Info.Version != "1.0.0" {
		t.Errorf("%+v, %v", document, err)
	}
}

// TestPublicURL: the address stands in every document, and what stands for it is in the files once.
func TestPublicURL(t *testing.T) {
	if strings.Count(yamlText, yamlServer) != 1 || strings.Count(jsonText, jsonServer) != 1 {
		t.Fatal("openapi.yaml or openapi.json has not just one server")
	}
	with, without := New(Config{PublicURL: "https://tasas.example/"}), New(Config{})
	for i, document := range with.all {
		if !bytes.Contains(document.made().body, []byte("https://tasas.example")) || bytes.Contains(document.made().body, []byte("tasas.example//")) {
			t.Errorf("%s does not name the address, or with two slashes", document.path)
		}
		if bytes.Contains(document.made().body, []byte(modelsServer)) || bytes.Contains(without.all[i].made().body, []byte(modelsServer)) {
			t.Errorf("%s has %s left", document.path, modelsServer)
		}
		if document.made().tag == without.all[i].made().tag {
			t.Errorf("%s: another body has the same tag", document.path)
		}
	}
	var node yaml.Node
	if err := yaml.Unmarshal(with.all[1].made().body, &node); err != nil {
		t.Fatal(err)
	}
	var compact, indent bytes.Buffer
	asJSON(t, &compact, &node)
	if err := json.Indent(&indent, compact.Bytes(), "", "  "); err != nil || indent.String()+"\n" != string(with.all[0].made().body) {
		t.Errorf("with an address JSON and YAML differ: %v", err)
	}
}

package contract

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

func collected(t *testing.T, publicURL string) collection {
	t.Helper()
	var got collection
	if err := json.Unmarshal(ask(served(publicURL), "GET", "/postman.json").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestPostman_Operations checks that each operation is one request, in the folder of its tag, with only the required
// parameters enabled.
func TestPostman_Operations(t *testing.T) {
	got := collected(t, "")
	if base := got.Variable[0].Value; base != "http://127.0.0.1:8080" {
		t.Errorf("without an address baseUrl is %q", base)
	}
	found := map[string]item{}
	for _, folder := range got.Item {
		if folder.Description == "" || len(folder.Item) == 0 {
			t.Errorf("folder %s is empty or not explained", folder.Name)
		}
		for _, item := range folder.Item {
			name := item.Request.Method + " /" + strings.Join(item.Request.URL.Path, "/")
			if _, twice := found[name]; twice {
				t.Errorf("%s is there twice", name)
			}
			found[name] = item
		}
	}
	document := readOpenAPI()
	operations := 0
	for _, path := range document.Paths {
		for _, method := range path.value {
			operations++
			name := strings.ToUpper(method.name) + " " + strings.NewReplacer("{", ":", "}", "").Replace(path.name)
			item, ok := found[name]
			if !ok {
				t.Errorf("%s is missing", name)
				continue
			}
			checkItem(t, name, item, document, &method.value)
		}
	}
	if operations < 15 || len(found) != operations {
		t.Errorf("%d requests for %d operations", len(found), operations)
	}
}

func checkItem(t *testing.T, name string, item item, document *openAPI, op *operation) {
	t.Helper()
	parts, err := url.Parse(strings.Replace(item.Request.URL.Raw, "{{baseUrl}}", "http://a.example", 1))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, ref := range op.Parameters {
		p := document.resolve(ref)
		if p.Name == "" || p.Description == "" || len(p.Example) == 0 {
			t.Errorf("%s: %s has no name, no explanation or no example", name, ref.Ref)
		}
		if p.In == "query" && parts.Query().Has(p.Name) != p.Required {
			t.Errorf("%s: %s is in the URL: %v", name, p.Name, !p.Required)
		}
	}
	if strings.Count(item.Request.URL.Raw, "/:") != len(item.Request.URL.Variable) {
		t.Errorf("%s: %d values for the path", name, len(item.Request.URL.Variable))
	}
	if (op.RequestBody != nil) != (item.Request.Body != nil) || item.Request.Body != nil && !json.Valid([]byte(item.Request.Body.Raw)) {
		t.Errorf("%s: body %+v", name, item.Request.Body)
	}
	for _, sample := range item.Response {
		if sample.Name == "" || sample.Code < 200 || sample.Code > 299 || !json.Valid([]byte(sample.Body)) {
			t.Errorf("%s: sample %+v", name, sample)
		}
	}
	if item.Request.Method == "GET" && len(item.Response) == 0 {
		t.Errorf("%s shows no answer", name)
	}
}

// TestPostman_Credentials checks which requests send a key or a session, and that the collection contains no secret.
func TestPostman_Credentials(t *testing.T) {
	got := collected(t, "https://tasas.example")
	if got.Auth.Type != "bearer" || got.Auth.Bearer[0].Value != "{{apiKey}}" || got.Info.Schema != collectionSchema {
		t.Errorf("%+v", got)
	}
	for _, v := range got.Variable {
		if want := map[string]string{"baseUrl": "https://tasas.example"}[v.Key]; v.Value != want {
			t.Errorf("%s is %q", v.Key, v.Value)
		}
	}
	for _, folder := range got.Item {
		for _, item := range folder.Item {
			way := "apiKey"
			if a := item.Request.Auth; a != nil {
				way = a.Type
				if len(a.Bearer) > 0 {
					way = strings.Trim(a.Bearer[0].Value, "{}")
				}
			}
			want := map[string]string{"Rates": "apiKey", "Catalogue": "apiKey", "Health": "noauth", "Account": "sessionToken"}[folder.Name]
			if item.Request.Body != nil && strings.Contains(item.Request.Body.Raw, "email") {
				want = "noauth"
			}
			if way != want {
				t.Errorf("%s %s: sent with %s, want %s", item.Request.Method, item.Request.URL.Raw, way, want)
			}
		}
	}
}

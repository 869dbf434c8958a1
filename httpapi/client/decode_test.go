package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

type golden struct {
	name, target string // method and target of the request
	response     *http.Response
	body         []byte
}

func goldens(t testing.TB, patterns ...string) []golden {
	t.Helper()
	var found []golden
	for _, pattern := range patterns {
		files, err := filepath.Glob("../testdata/" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no golden answers %s: %v", pattern, err)
		}
		for _, file := range files {
			found = append(found, readGolden(t, file))
		}
	}
	return found
}

func readGolden(t testing.TB, file string) golden {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	request, _, _ := strings.Cut(string(text), "\n")
	_, answer, found := bytes.Cut(text, []byte("\nHTTP/1.1 "))
	head, body, split := bytes.Cut(answer, []byte("\n\n"))
	if !found || !split {
		t.Fatalf("%s: no answer in it", file)
	}
	status, lines, _ := strings.Cut(string(head), "\n")
	g := golden{name: filepath.Base(file), target: strings.TrimPrefix(request, "# "), response: &http.Response{Header: http.Header{}}, body: bytes.TrimSpace(body)}
	if g.response.StatusCode, err = strconv.Atoi(strings.Fields(status)[0]); err != nil {
		t.Fatalf("%s: %q: %v", file, status, err)
	}
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		g.response.Header.Add(name, value)
	}
	return g
}

// responseType returns a value of the type of an operation, nil if it is unknown.
func responseType(target string) any {
	method, path, _ := strings.Cut(target, " ")
	path, _, _ = strings.Cut(path, "?")
	if id, found := strings.CutPrefix(path, institutionsPath+"/"); found && id != "" {
		return new(body[*InstitutionDetail])
	}
	if method == http.MethodPost && path == keysPath {
		return new(body[*NewKey])
	}
	return map[string]any{
		currenciesPath: new(body[[]Currency]), institutionsPath: new(Page[Institution]), ratesPath: new(Page[Rate]), bestPath: new(Ranking),
		historyPath: new(Page[HistoryEntry]), convertPath: new(Page[Conversion]), codesPath: new(body[*CodeSent]),
		sessionsPath: new(body[*Session]), keysPath: new(body[[]Key]), usagePath: new(body[*Usage]),
	}[path]
}

// strictly decodes without unknown fields and encodes again: no field is lost, and none is added.
func strictly(t *testing.T, g *golden, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(g.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", g.name, err)
	}
	again, err := json.Marshal(into)
	var values [2]any
	for i, text := range [][]byte{g.body, again} {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		err = errors.Join(err, decoder.Decode(&values[i]))
	}
	if err != nil || !reflect.DeepEqual(values[0], values[1]) {
		t.Errorf("%s: %v; the node says\n%s\nthe types keep\n%s", g.name, err, g.body, again)
	}
}

// TestDecode_Golden checks that the types have exactly the fields of the contract, and that errors are read whole.
func TestDecode_Golden(t *testing.T) {
	seen, refusals := map[reflect.Type]bool{}, 0
	for _, g := range goldens(t, "golden/*.http", "limits/*.http", "accounts/*.http") {
		switch into := responseType(g.target); {
		case len(g.body) == 0: // HEAD, 204
		case g.response.StatusCode >= 400:
			refusals++
			var sent errorBody
			strictly(t, &g, &sent)
			e := readError(g.response, g.body)
			if e.Status != g.response.StatusCode || e.Code == CodeNone || e.Message == "" || e.RequestID != sent.Error.RequestID || len(e.Details) != len(sent.Error.Details) {
				t.Errorf("%s: read as %+v", g.name, e)
			}
			if limited := e.Status == 429 || e.Status == 503; limited != (e.RetryAfter > 0) {
				t.Errorf("%s: RetryAfter is %s", g.name, e.RetryAfter)
			}
		case into == nil:
			t.Errorf("%s: nothing is known of %s", g.name, g.target)
		default:
			seen[reflect.TypeOf(into)] = true
			strictly(t, &g, into)
		}
	}
	if len(seen) != 12 || refusals < 100 {
		t.Errorf("%d types of 12, %d refusals", len(seen), refusals)
	}
}

func TestDecimal(t *testing.T) {
	if Decimal("59.3").Cmp("59.30") != 0 || Decimal("9.9").Cmp("10.0") >= 0 || Decimal("99999999999998990000.00").Rat().Num().String() != "99999999999998990000" {
		t.Error("decimals are compared by something else than their value")
	}
}

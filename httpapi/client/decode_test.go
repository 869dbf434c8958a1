package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	if id, found := strings.CutPrefix(path, "/v1/institutions/"); found && id != "" {
		return new(body[*InstitutionDetail])
	}
	if method == http.MethodPost && path == "/v1/account/keys" {
		return new(body[*NewKey])
	}
	return map[string]any{
		"/v1/currencies": new(body[[]Currency]), "/v1/institutions": new(Page[Institution]), "/v1/rates": new(Page[Rate]), "/v1/rates/best": new(Ranking),
		"/v1/rates/history": new(Page[HistoryEntry]), "/v1/convert": new(Page[Conversion]), "/v1/account/codes": new(body[*CodeSent]),
		"/v1/account/sessions": new(body[*Session]), "/v1/account/keys": new(body[[]Key]), "/v1/account/usage": new(body[*Usage]),
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

func servePages(items int, next func(cursor int) int) responder {
	return func(r *http.Request) (*http.Response, error) {
		var cursor, limit int
		_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &cursor) // 0 if it is missing
		if _, err := fmt.Sscan(r.URL.Query().Get("limit"), &limit); err != nil {
			return nil, err
		}
		var data []string
		for i := cursor; i < min(items, cursor+limit); i++ {
			data = append(data, fmt.Sprintf(`{"date":"2026-01-01","institutionId":"i%d","currency":"USD","buy":"1"}`, i))
		}
		following := "null"
		if cursor+limit < items && next(cursor+limit) >= 0 {
			following = fmt.Sprint(next(cursor + limit))
		}
		body := fmt.Sprintf(`{"data":[%s],"meta":{"total":%d,"nextCursor":%s,"generatedAt":"2026-01-01T00:00:00Z","quoteCurrency":"DOP"}}`, strings.Join(data, ","), items, following)
		return respondWith(200, body)(r)
	}
}

func sameCursor(cursor int) int { return cursor }

// TestIterate checks that every item comes once and in order, in as few requests as possible.
func TestIterate(t *testing.T) {
	for _, c := range []struct{ items, cursor, limit, take, want, requests int }{
		{0, 0, 0, 9999, 0, 1}, {450, 0, 0, 9999, 450, 3}, {400, 0, 0, 9999, 400, 2}, {450, 449, 0, 9999, 1, 1}, {10, 0, 3, 9999, 10, 4}, {10, 0, 3, 4, 4, 2}, {10, 0, 3, 3, 3, 1},
	} {
		s := &fakeTransport{responders: []responder{servePages(c.items, sameCursor)}}
		all := newTestClient(t, s).AllRates(t.Context(), Filter{Cursor: c.cursor, Limit: c.limit})
		for range 2 { // it can be repeated
			s.requests = nil
			seen := 0
			for entry, err := range all {
				if want := fmt.Sprintf("i%d", c.cursor+seen); err != nil || entry.InstitutionID != want {
					t.Fatalf("%+v: %v, %v, want %s", c, entry, err, want)
				}
				if seen++; seen == c.take {
					break
				}
			}
			if seen != c.want || len(s.requests) != c.requests {
				t.Errorf("%+v: %d items in %d requests", c, seen, len(s.requests))
			}
		}
	}
}

// TestIterate_Ends checks that a list that is too long and failures end an iteration with an error.
func TestIterate_Ends(t *testing.T) {
	for name, answers := range map[string][]responder{
		"no cursor after item 4": {servePages(10, func(int) int { return -1 })},
		"401":                    {servePages(10, sameCursor), refuseWith(401, CodeRevokedKey, "")},
	} {
		s := &fakeTransport{responders: answers}
		items, last := 0, error(nil)
		for _, err := range newTestClient(t, s).AllRates(t.Context(), Filter{Limit: 4}) {
			if last != nil {
				t.Errorf("%s: the walk goes on behind its error", name)
			}
			if last = err; err == nil {
				items++
			}
		}
		if items != 4 || last == nil || !strings.Contains(last.Error(), name) {
			t.Errorf("%s: %d items, %v", name, items, last)
		}
	}
}

package params

import (
	"net/url"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
)

// TestQuery_OwnsItsMemory: a query has no pointer into the request.
func TestQuery_OwnsItsMemory(t *testing.T) {
	table := NewTable()
	text := []byte("currency=USD&operation=sell&amount=12.50&institution=bhd&channel=cash&kind=reference&limit=7&cursor=8")
	options := Options{Catalogue: engine.DefaultCatalogue(), Today: engine.DateOf(time.Date(2025, 11, 21, 14, 0, 0, 0, time.UTC))}
	var q Query
	if problems := table.Read(&q, Convert, nil, text, options); problems != nil {
		t.Fatal(problems)
	}
	amount, err := engine.ParseAmount("12.50")
	if err != nil {
		t.Fatal(err)
	}
	want := Query{Operation: engine.Sell, Amount: amount, PageRequest: engine.PageRequest{Limit: 7, Cursor: 8},
		Filter: engine.Filter{Currency: "USD", Institution: "bhd", Channel: engine.Cash, Kind: engine.Reference}}
	for i := range text {
		text[i] = '#'
	}
	if !reflect.DeepEqual(q, want) {
		t.Errorf("the query is %+v, want %+v", q, want)
	}
	path := []byte("/v1/institutions/no-such")
	table.Read(&q, Institution, path, nil, options)
	copy(path, "########################")
	if q.ID != "no-such" {
		t.Errorf("the id is %q", q.ID)
	}
}

// TestTable_Client: the Go client sends every parameter. Other tests compare the table with openapi.yaml, and that with
// the documentation.
func TestTable_Client(t *testing.T) {
	source, err := os.ReadFile("../../client/operations.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range NewTable() {
		if !strings.Contains(string(source), strconv.Quote(row.Name)+", ") {
			t.Errorf("the client does not know %s", row.Name)
		}
	}
}

// FuzzPathID holds the decoding of a path id against the standard library's (decision Q9).
func FuzzPathID(f *testing.F) {
	for _, seed := range []string{"bhd", "%62hd", "%", "%zz", "%2", "a%2Fb", "%ff", "ñ", strings.Repeat("a", 81), strings.Repeat("%C3%B1", 80)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		id, ok := PathID([]byte(encoded))
		want, err := url.PathUnescape(encoded)
		if wantOK := err == nil && utf8.RuneCountInString(want) <= IDCharactersMax; ok != wantOK {
			t.Fatalf("%q: %v, want %v", encoded, ok, wantOK)
		}
		if ok && string(id) != want {
			t.Fatalf("%q: %q, want %q", encoded, id, want)
		}
	})
}

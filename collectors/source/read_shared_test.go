package source_test

import (
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
)

// sharedFile has its labels once for both pages, which speak for two banks.
const sharedFile = `{"id": "indexa", "name": "Indexa", "upstreamSource": "Indexa",
  "labels": {"Dólar:": {"currency": "USD"}, "EURO": {"currency": "EUR"}},
  "pages": [
    {"name": "one", "institution": "popular", "requests": [{"url": "https://api.indexa.example/1"}], "extract": {"method": "json-rows",
      "rows": {"at": "data", "label": {"at": "name"}, "buy": {"at": "buy"}, "labels": {"euro": {"currency": "EUR", "channel": "cash"}}}}},
    {"name": "two", "institution": "bhd", "requests": [{"url": "https://api.indexa.example/2"}], "extract": {"method": "json-rows",
      "rows": {"at": "data", "label": {"at": "name"}, "sell": {"at": "sell"}, "ignore": ["Euro"]}}}]}`

// Labels of a file are known to all its pages; what a page says or ignores itself wins.
func TestLabelsOfAFile(t *testing.T) {
	d, err := source.Read("f.json", []byte(sharedFile))
	if err != nil {
		t.Fatal(err)
	}
	one, two := d.Pages[0].Extract.Rows.Labels, d.Pages[1].Extract.Rows.Labels
	if len(one) != 2 || one["dolar"].Currency != "USD" || one["euro"].Channel != "cash" {
		t.Errorf("labels of the first page are %v", one)
	}
	if len(two) != 1 || two["dolar"].Currency != "USD" {
		t.Errorf("labels of the second page are %v", two)
	}
	body := []byte(`{"data": [{"name": "DOLAR", "buy": 58.00, "sell": 60.10}, {"name": "euro", "buy": 66, "sell": 70}]}`)
	for page, want := range []string{"popular USD 58.00 , popular EUR 66 ", "bhd USD  60.10"} {
		answer, err := d.Parse(page, &source.Document{Body: body})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range answer.Observations {
			got = append(got, strings.Join([]string{o.InstitutionID, o.Currency, o.Buy, o.Sell}, " "))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("page %d says %q, want %q", page, got, want)
		}
	}
}

func TestBrokenLabelsOfAFileAreRefused(t *testing.T) {
	for name, c := range map[string]broken{
		"no institution":     {sharedFile, `"institution": "bhd", `, ``, `the label "dolar" of the file names no institution`},
		"no currency":        {sharedFile, `"Dólar:": {"currency": "USD"}`, `"Dólar:": {}`, `the label "dolar" of the file names no currency`},
		"a side":             {sharedFile, `"Dólar:": {`, `"Dólar:": {"side": "buy", `, `the label "dolar" of the file names a side`},
		"no side":            {sharedFile, `"buy": {"at"`, `"value": {"at"`, `the label "dolar" of the file names no side`},
		"twice":              {sharedFile, `"EURO": {`, `"dolar": {`, "is the same label"},
		"unknown key":        {sharedFile, `"Dólar:": {`, `"Dólar:": {"rate": 1, `, `labels.Dólar:: unknown key "rate"`},
		"empty":              {sharedFile, `{"Dólar:": {"currency": "USD"}, "EURO": {"currency": "EUR"}}`, `{}`, "labels is empty"},
		"ignored all":        {sharedFile, `"ignore": ["Euro"]`, `"ignore": ["Euro", "dólar"]`, "here and for the whole file"},
		"nobody needs them":  {textFile, `"institution": "qik",`, `"institution": "qik", "labels": {"a": {"currency": "USD"}},`, "no page tells its values apart"},
		"unless in JSON":     {jsonFile, `"at": "data",`, `"at": "data", "unless": "x",`, `unknown key "unless"`},
		"unless no pattern":  {rowsFile, `"at": "table tr",`, `"at": "table tr", "unless": "(",`, "unless is no pattern"},
		"unless of no match": {textFile, `"min": 1`, `"min": 1, "unless": "("`, "unless is no pattern"},
		"institution":        {sharedFile, `"institution": "bhd"`, `"institution": "BHD"`, "institution is not of the form"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(c.file, c.old) {
				t.Fatalf("%q is not in the file", c.old)
			}
			_, err := source.Read("f.json", []byte(strings.Replace(c.file, c.old, c.fresh, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v; want one with %q", err, c.want)
			}
		})
	}
}

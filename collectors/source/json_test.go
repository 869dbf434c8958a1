package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedDocument is a real document that lies beside the repository; the test is skipped where it does not.
func sharedDocument(t *testing.T, name string) *Document {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", filepath.FromSlash(name)))
	if err != nil {
		t.Skipf("the real document %s is not here", name)
	}
	return &Document{Body: body}
}

func referenceJSON() *Definition {
	return sourceOf(Extract{
		Method: JSONFields, Fields: []Field{
			{Side: BuySide, Place: Place{At: "result.actualPurchaseValue"}}, {Side: SellSide, Place: Place{At: "result.actualSellingValue"}},
		},
		Date: &Date{Place: Place{At: "result.date"}, Form: ISODate}, Expect: []Expect{{Path: "success", Value: "true"}},
	})
}

// The real body of the central bank, 17 September 2026. Its T00:00:00Z is a day and no moment.
func TestJSONFields_RealReference(t *testing.T) {
	checkCase(t, referenceJSON(), sharedDocument(t, "samples/bcrd__GetActualExchangeRate__2026-09-17.json"), parseCase{
		want: []string{"test USD unspecified [58.9582] [59.3318] 2026-09-17"},
	})
}

func TestJSONFields_Envelope(t *testing.T) {
	const body = `{"result":{"actualPurchaseValue":58.9582,"actualSellingValue":59.3318,"date":"2026-09-17T00:00:00Z"},"success":true}`
	want := []string{"test USD unspecified [58.9582] [59.3318] 2026-09-17"}
	replaced := func(old, new string) string { return strings.Replace(body, old, new, 1) }
	checkCases(t, referenceJSON(), []parseCase{
		{"as it is", body, want, "", ""},
		{"with blanks and a mark of byte order", "\ufeff \n" + body + "\n", want, "", ""},
		{"digits as written", replaced("58.9582", "58.900"), []string{"test USD unspecified [58.900] [59.3318] 2026-09-17"}, "", ""},
		{"as text", replaced("58.9582", `"58.9582"`), want, "", ""},
		{"zeros that say nothing", replaced("58.9582", "58.958200"), []string{"test USD unspecified [58.958200] [59.3318] 2026-09-17"}, "", ""},
		{"a long tail of zeros", replaced("58.9582", "58.9582"+strings.Repeat("0", 300)), want, "", ""},
		{"no success", replaced("true", "false"), nil, WrongContent, `want "true" at "success", found "false"`},
		{"no word on success", replaced("success", "ok"), nil, Layout, `found nothing`},
		{"no date", replaced("date", "day"), nil, Layout, "no date"},
		{"a null date", replaced(`"2026-09-17T00:00:00Z"`, "null"), nil, Layout, "iso"},
		{"a day that does not exist", replaced("09-17", "09-31"), nil, Layout, "2026-09-31"},
		{"a moment instead of a day", replaced("T00:00:00Z", "T03:00:00Z"), nil, Layout, "iso"},
		{"other keys", strings.ReplaceAll(body, "actual", "current"), nil, Layout, "result.actualPurchaseValue"},
		{"keys in other letters", strings.ReplaceAll(body, "actual", "Actual"), nil, Layout, ""},
		{"a key twice", replaced(`"actualSellingValue":59.3318`, `"actualSellingValue":59.3318,"actualPurchaseValue":1`), nil, Value, "twice"},
		{"a key twice on the way", replaced(`{"result"`, `{"result":{},"result"`), nil, Value, "twice"},
		{"another key twice", replaced(`"success"`, `"other":1,"other":2,"success"`), want, "", ""},
		{"an object", replaced("58.9582", `{"value":58.9582}`), []string{
			"test USD unspecified [] [59.3318] 2026-09-17", `note: test USD: no buy stands at "result.actualPurchaseValue"`,
		}, "", ""},
		{"a flag", replaced("58.9582", "true"), []string{"test USD unspecified [true] [59.3318] 2026-09-17"}, "", ""},
		{"cut off", body[:len(body)-1], nil, WrongContent, "want JSON"},
		{"something behind it", body + "{}", nil, WrongContent, "want JSON"},
		{"empty", "", nil, Empty, "0 bytes"},
		{"blank", " \r\n\t", nil, Empty, ""},
		{"null", "null", nil, Layout, ""},
		{"a page", pageOf("58.9582"), nil, WrongContent, "HTML"},
		{"XML", `<?xml version="1.0"?><feed/>`, nil, WrongContent, "markup"},
		{"nested", strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000), nil, WrongContent, "too deeply"},
		{"nested more", strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat(`}`, 20000), nil, WrongContent, ""},
	})
}

func TestJSONRows_Real(t *testing.T) {
	rows := &Rows{
		At: "exchangeRates", Label: Place{At: "currency"}, Buy: &Place{At: "buyingRate"}, Sell: &Place{At: "sellingRate"}, Min: 2,
		Labels: map[string]Target{"usd": {Currency: "USD"}, "eur": {Currency: "EUR"}},
	}
	checkCase(t, sourceOf(Extract{Method: JSONRows, Rows: rows}), sharedDocument(t, "samples/bhd__modal-cambio-rate.partial.json"),
		parseCase{want: []string{"test USD unspecified [60.9] [62.9]", "test EUR unspecified [71.4] [76.4]"}})
	sides := &Rows{
		At: "data", Label: Place{At: "name"}, Value: &Place{At: "rate"}, Min: 1, Date: &Date{Place: Place{At: "date"}, Form: ISODate},
		Labels: map[string]Target{"dollarsellrate": {Currency: "USD", Side: SellSide}},
	}
	checkCase(t, sourceOf(Extract{Method: JSONRows, Rows: sides}), sharedDocument(t, "samples/indexa__api-rates.json"),
		parseCase{want: []string{"test USD unspecified [] [53.63] 2020-03-09"}})
}

// Codes of a house of its own, some unknown; the list may be empty, which is an answer with nothing in it.
func TestJSONRows_Codes(t *testing.T) {
	d := sourceOf(Extract{
		Method: JSONRows, Expect: []Expect{{Path: "status", Value: "OK"}}, Rows: &Rows{
			At: "data", Label: Place{At: "coinCode"}, Buy: &Place{At: "purchaseValue"}, Sell: &Place{At: "saleValue"}, Min: 2,
			Labels: map[string]Target{"2": {Currency: "USD"}, "4": {Currency: "EUR"}, "33": {Currency: "CHF"}},
		},
	})
	checkCases(t, d, []parseCase{
		{
			"numbers and texts",
			`{"status":"OK","data":[{"coinCode":4,"purchaseValue":"66.80","saleValue":70.9},{"coinCode":"2","purchaseValue":57.1,"saleValue":"59.80"},
			{"coinCode":99,"purchaseValue":1},{"purchaseValue":1},7,null]}`,
			[]string{"test EUR unspecified [66.80] [70.9]", "test USD unspecified [57.1] [59.80]", `note: unknown label "99"`}, "", "",
		},
		{"a list without entries", `{"status":"OK","data":[]}`, nil, Empty, "no entries"},
		{"no list", `{"status":"OK","data":{}}`, nil, Layout, "found an object"},
		{"nothing", `{"status":"OK"}`, nil, Layout, "no list"},
		{"more than rates", `{"status":"OK","data":[0` + strings.Repeat(",0", jsonValuesMax) + `]}`, nil, WrongContent, "more values"},
		{"an error", `{"status":"ERROR","data":[]}`, nil, WrongContent, "ERROR"},
		{"too few", `{"status":"OK","data":[{"coinCode":4,"purchaseValue":66.8}]}`, nil, Layout, "want at least 2"},
		{"all codes new", `{"status":"OK","data":[{"coinCode":5,"saleValue":1},{"coinCode":6,"saleValue":1}]}`, nil, Layout, `unknown label "5"`},
		{"a key twice in a row", `{"status":"OK","data":[{"coinCode":4,"coinCode":2,"saleValue":1}]}`, nil, Value, "twice"},
	})
}

// One row for each side: the sides meet again in one quote, whatever the order.
func TestJSONRows_OneSideEach(t *testing.T) {
	d := sourceOf(Extract{Method: JSONRows, Rows: &Rows{
		Label: Place{At: "name"}, Value: &Place{At: "rate"}, Min: 1, Labels: map[string]Target{
			"dollarbuyrate": {Currency: "USD", Side: BuySide}, "dollarsellrate": {Currency: "USD", Side: SellSide},
			"eurobuyrate": {Currency: "EUR", Side: BuySide}, "reference": {Currency: "EUR", Channel: "cash", Side: BothSides},
		},
	}})
	checkCases(t, d, []parseCase{
		{
			"all", `[{"name":"dollarsellrate","rate":59.8},{"name":"eurobuyrate","rate":66},{"name":"dollarbuyrate","rate":57},
			{"name":"dollarbuyrate","rate":57},{"name":"reference","rate":67}]`,
			[]string{"test USD unspecified [57] [59.8]", "test EUR unspecified [66] []", "test EUR cash [67] [67]"}, "", "",
		},
		{
			"two that differ", `[{"name":"dollarsellrate","rate":59.8},{"name":"dollarsellrate","rate":60}]`,
			[]string{"test USD unspecified [] [59.8]", "test USD unspecified [] [60]"}, "", "",
		},
	})
}

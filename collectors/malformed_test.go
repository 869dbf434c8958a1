package collectors

import (
	"strings"
	"testing"
)

// valid is a line as fields, which tests spoil one at a time.
func valid() fields {
	return fields{
		columnObservedAt: "2025-01-02T12:00:00Z", columnInstitutionID: "popular", columnCurrency: "USD", columnChannel: "branch",
		columnKind: "commercial", columnBuy: "58", columnSell: "60", columnSourceID: "a",
	}
}

func TestMalformedValues(t *testing.T) {
	const instants = ", want an RFC 3339 instant of the years 1900 to 2999, as 2025-05-17T13:29:03Z"
	const dates = ", want a calendar date of the years 1900 to 2999, as 2025-05-17"
	const control = ", want text without control characters and without U+FFFD, the mark of damaged text"
	const channels = ", want nothing or one of unspecified, branch, digital, cash, transfer"
	long := strings.Repeat("ñ", 81)
	tests := []struct {
		column column
		value  string
		want   string // after the place
	}{
		{columnObservedAt, "", "found nothing, want a value"},
		{columnInstitutionID, "", "found nothing, want a value"},
		{columnCurrency, "", "found nothing, want a value"},
		{columnSourceID, "", "found nothing, want a value"},
		{columnObservedAt, "2025-01-02", `found "2025-01-02"` + instants},
		{columnObservedAt, "2025-01-02 12:00:00Z", `found "2025-01-02 12:00:00Z"` + instants},
		{columnObservedAt, "2025-01-02T12:00:00", `found "2025-01-02T12:00:00"` + instants},
		{columnObservedAt, "2025-02-29T12:00:00Z", `found "2025-02-29T12:00:00Z"` + instants},
		{columnObservedAt, "2025-01-02T1:00:00Z", `found "2025-01-02T1:00:00Z"` + instants},
		{columnObservedAt, "2025-01-02T12:00:00,5Z", `found "2025-01-02T12:00:00,5Z"` + instants},
		{columnObservedAt, "2025-01-02T12:00:00.1234567891Z", `found "2025-01-02T12:00:00.1234567891Z"` + instants},
		{columnObservedAt, "2025-01-02T12:00:00.Z", `found "2025-01-02T12:00:00.Z"` + instants},
		{columnObservedAt, "2025-01-02T12:00:00+24:00", `found "2025-01-02T12:00:00+24:00"` + instants},
		{columnObservedAt, "2025-01-02T12:00:00z", `found "2025-01-02T12:00:00z"` + instants},
		{columnObservedAt, "0205-01-02T12:00:00Z", `found "0205-01-02T12:00:00Z"` + instants},
		{columnObservedAt, "2999-12-31T23:00:00-04:00", `found "2999-12-31T23:00:00-04:00"` + instants},
		{columnPublishedAt, "yesterday", `found "yesterday"` + instants},
		{columnEffectiveDate, "2025-02-29", `found "2025-02-29"` + dates},
		{columnEffectiveDate, "02/01/2025", `found "02/01/2025"` + dates},
		{columnEffectiveDate, "0025-02-02", `found "0025-02-02"` + dates},
		{columnChannel, "sucursal", `found "sucursal"` + channels},
		{columnChannel, "Branch", `found "Branch"` + channels},
		{columnKind, "official", `found "official", want nothing or one of commercial, reference`},
		{columnInstitutionID, long, `found "` + strings.Repeat("ñ", 32) + `" and 98 bytes more, want at most 80 characters`},
		{columnSourceID, strings.Repeat("s", 81), `found "` + strings.Repeat("s", 64) + `" and 17 bytes more, want at most 80 characters`},
		{columnBuy, "5\t8", `found "5\t8"` + control},
		{columnSell, "6\uFFFD0", "found \"6\uFFFD0\"" + control},
		{columnCurrency, "US\x7f", `found "US\x7f"` + control},
	}
	for _, test := range tests {
		values := valid()
		values[test.column] = test.value
		want := "line 2, " + test.column.String() + ": " + test.want
		for _, format := range []Format{CSV, NDJSON} {
			text := written(t, format, values)
			all := readText(t, text, "x."+string(format))
			want := "x." + string(format) + ": " + want
			if len(all.rows) != 0 || len(all.problems) != 1 || all.problems[0].Error() != want {
				t.Errorf("%s %q:\ngot  %v\nwant %s", test.column, test.value, all.problems, want)
			}
		}
	}
}

// written is a file whose second line holds the values, whatever they are.
func written(t *testing.T, format Format, values fields) string {
	t.Helper()
	var out strings.Builder
	w, err := NewWriter(&out, format)
	if err != nil {
		t.Fatal(err)
	}
	if format == NDJSON {
		out.WriteString("\n")
	}
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	if err := w.write(&values); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestMalformedCSV(t *testing.T) {
	const good = "2025-01-02T12:00:00Z,popular,USD,,,58,60,a,,"
	const doubled = `, want fields with quotes in quotes and each quote doubled, as "a ""b"""`
	tests := []struct{ line, want string }{
		{good + ",", "found 11 fields, want 10, as in the header"},
		{good[:len(good)-1], "found 9 fields, want 10, as in the header"},
		{strings.ReplaceAll(good, ",", ";"), "found 1 fields, want 10, as in the header"},
		{columns + "\r", "observedAt: found \"observedAt\", want an RFC 3339 instant of the years 1900 to 2999, as 2025-05-17T13:29:03Z"},
		{strings.Replace(good, "58", `5"8`, 1), `found a quote inside the field "5\"8"` + doubled},
		{strings.Replace(good, "58", `"5"8`, 1), `found "8,60,a,," after a closing quote, want a comma`},
		{strings.Replace(good, "58", `"5""8`, 1), `found the field "\"5\"\"8,60,a,," without a closing quote, want a quote at its end, in the same line`},
		{good + `"`, `found the field "\"" without a closing quote, want a quote at its end, in the same line`},
		{strings.Replace(good, "58", "5\x008", 1), "found the byte 0x00 at position 37, want text in UTF-8 without NUL"},
		{strings.Replace(good, "popular", "pe\xf1a", 1), "found the byte 0xF1 at position 24, want text in UTF-8 without NUL"},
		{strings.Replace(good, "popular", "\u00f1a\xf1a", 1), "found the byte 0xF1 at position 25, want text in UTF-8 without NUL"},
	}
	for _, test := range tests {
		all := readText(t, header+good+"\n"+test.line+"\n"+good+"\n", "x.csv")
		checkMalformed(t, all, test.line, "x.csv: line 3", test.want)
	}
}

func TestMalformedNDJSON(t *testing.T) {
	const good = `{"observedAt":"2025-01-02T12:00:00Z","institutionId":"popular","currency":"USD","buy":"58","sell":"60","sourceId":"a"}`
	const quotes = `, want text in quotes, as "58.95", because numbers lose digits on their way`
	const object = ", want one JSON object"
	swap := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	tests := []struct{ line, want string }{
		{swap(`"58"`, `58.95`), "buy: found the number 58.95" + quotes},
		{swap(`"60"`, `1`+strings.Repeat("0", 70)), "sell: found the number 1" + strings.Repeat("0", 63) + " and 7 bytes more" + quotes},
		{swap(`"USD"`, `840`), "currency: found the number 840, want a string or null"},
		{swap(`"58"`, `true`), "buy: found true, want a string or null"},
		{swap(`"58"`, `{"value":"58"}`), "buy: found an object, want a string or null"},
		{swap(`"58"`, `["58"]`), "buy: found an array, want a string or null"},
		{swap(`"buy"`, `"compra"`), `found the unknown key "compra", want no keys but ` + columns},
		{swap(`"buy"`, `"Buy"`), `found the unknown key "Buy", want no keys but ` + columns},
		{swap(`"sell":"60"`, `"buy":"58"`), "buy: found the key twice, want each key once"},
		{swap(`"currency":"USD",`, ``), "currency: found nothing, want a value"},
		{swap(`"popular"`, `null`), "institutionId: found nothing, want a value"},
		{swap(`"58"`, `"\u0000"`), `buy: found "\x00", want text without control characters and without U+FFFD, the mark of damaged text`},
		{swap(`"58"`, `"\ud800"`), "buy: found \"\uFFFD\", want text without control characters and without U+FFFD, the mark of damaged text"},
		{good + good, "found no JSON: invalid character '{' after top-level value (position 119)" + object},
		{good + ",", "found no JSON: invalid character ',' after top-level value (position 119)" + object},
		{good[:40], "found no JSON: unexpected end of JSON input (position 40)" + object},
		{swap(`"a"}`, `"a",}`), "found no JSON: invalid character '}' looking for beginning of object key string (position 119)" + object},
		{"x", "found no JSON: invalid character 'x' looking for beginning of value (position 1)" + object},
		{`[]`, "found an array, want a JSON object"},
		{`"58"`, `found the string "58", want a JSON object`},
		{`58`, "found the number 58, want a JSON object"},
		{`null`, "found null, want a JSON object"},
		{`{}`, "observedAt: found nothing, want a value"},
		{strings.Repeat("[", 60_000), "found no JSON: invalid character '[' exceeded max depth (position 10001)" + object},
		{swap("USD", "U\x00D"), "found the byte 0x00 at position 77, want text in UTF-8 without NUL"},
		{swap("USD", "U\xffD"), "found the byte 0xFF at position 77, want text in UTF-8 without NUL"},
	}
	for _, test := range tests {
		all := readText(t, good+"\n\n"+test.line+"\n"+good+"\n", "x.ndjson")
		checkMalformed(t, all, test.line, "x.ndjson: line 3", test.want)
	}
}

// checkMalformed wants one problem between two good lines.
func checkMalformed(t *testing.T, all contents, line, place, want string) {
	t.Helper()
	separator := ": "
	if column, _, ok := strings.Cut(want, ": found"); ok && !strings.Contains(column, " ") {
		separator = ", "
	}
	want = place + separator + want
	if len(all.rows) != 2 || len(all.problems) != 1 {
		t.Errorf("%.200q: %d observations and problems %v", line, len(all.rows), all.problems)
	} else if got := all.problems[0].Error(); got != want {
		t.Errorf("%.200q:\ngot  %s\nwant %s", line, got, want)
	}
}

package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

func oneField() *Definition {
	return sourceOf(Extract{Method: HTMLRows, Rows: &Rows{
		At: "tr", Label: Locator{At: "th"}, Buy: &Locator{At: "td"}, Min: 1, Labels: map[string]Target{"dolar": {}},
	}})
}

const goodTable = "<table><tr><th>Dólar</th><td>58.90</td></tr></table>"

func TestContent_KindOfDocument(t *testing.T) {
	html, json, text := oneField(), referenceJSON(), sourceOf(Extract{Method: TextRegex, Text: &Text{Pattern: `(?P<buy>[0-9]+)`}})
	sheet := sourceOf(Extract{Method: XLSXRows, Sheet: &Sheet{Year: "ano", Month: "mes", Day: "dia"}, Fields: []Field{{Side: BuySide}}})
	for _, c := range []struct {
		name, contentType, body string
		source                  *Definition
		kind                    FailureKind
	}{
		{"an empty page", "text/html", "", html, Empty},
		{"blanks", "text/html", "\ufeff \n\t\u00a0", html, Empty},
		{"an empty workbook", "", "\x00\x00", sheet, Empty},
		{"a PDF document", "text/html", "%PDF-1.7 ...", html, WrongContent},
		{"packed bytes", "", "\x1f\x8b\x08\x00aaaa", html, WrongContent},
		{"packed JSON", "application/json", "\x1f\x8b\x08\x00aaaa", json, WrongContent},
		{"a picture", "", "\x89PNG\r\n\x1a\n", text, WrongContent},
		{"zero bytes in the middle", "text/html", "<html>\x00\x01\x02</html>", html, WrongContent},
		{"JSON for HTML", "application/json", `{"a":"<b>"}`, html, WrongContent},
		{"text for HTML", "text/html", "58.90", html, WrongContent},
		{"XML for HTML", "text/xml", `<?xml version="1.0"?><rss/>`, html, WrongContent},
		{"HTML for JSON", "application/json", pageOf(goodTable), json, WrongContent},
		{"HTML for a workbook", "application/octet-stream", pageOf(goodTable), sheet, WrongContent},
		{"JSON for a workbook", "", `{}`, sheet, WrongContent},
		{"half a workbook", "", "PK\x03\x04 and no more", sheet, WrongContent},
		{"an old workbook", "", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", sheet, WrongContent},
		{"half a page", "text/html", strings.TrimSuffix(pageOf(goodTable), "</html>"), html, WrongContent},
		{"a page without end", "text/html", "<!-- x --><HTML><body>" + goodTable + strings.Repeat(" ", 5000), html, WrongContent},
		{"a page that is far too long", "text/html", pageOf(goodTable + strings.Repeat(" ", textBytesMax)), html, WrongContent},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.source.Parse(0, &Document{ContentType: c.contentType, Body: []byte(c.body)})
			wantFailure(t, err, c.kind, "")
		})
	}
}

// Pieces of pages: without <html> nothing is missing.
func TestContent_Fragments(t *testing.T) {
	d := oneField()
	want := []string{"test USD unspecified [58.90] []"}
	checkCase(t, d, documentOf(goodTable), parseCase{want: want})
}

// cutFault is where a document that was cut off says something else than the whole one, "" when nowhere.
func cutFault(d *Definition, text string) string {
	whole, err := d.Parse(0, documentOf(text))
	if err != nil {
		return err.Error()
	}
	for end := range len(text) {
		part, err := d.Parse(0, documentOf(text[:end]))
		if err == nil && !slices.Equal(lines(part), lines(whole)) {
			return fmt.Sprintf("cut after %d bytes it says %q, whole %q", end, lines(part), lines(whole))
		}
	}
	return ""
}

// A document that was cut off anywhere gives its rates unchanged or not at all: half a number is a number too.
func TestI3_EveryCut(t *testing.T) {
	text := sourceOf(Extract{Method: TextRegex, Text: &Text{At: "td", Pattern: `(?P<buy>[0-9.]+)`}})
	for d, document := range map[*Definition]string{
		oneField(): pageOf(goodTable), text: pageOf(goodTable),
		referenceJSON(): `{"success":true,"result":{"date":"2026-09-17","actualPurchaseValue":58.9582,"actualSellingValue":"59.3318"}}`,
	} {
		if fault := cutFault(d, document); fault != "" {
			t.Errorf("%s: %s", d.Pages[0].Extract.Method, fault)
		}
	}
}

// Names survive every charset, and the bytes of none become digits.
func TestContent_Charsets(t *testing.T) {
	latin, err := charmap.Windows1252.NewEncoder().String(pageOf(goodTable))
	if err != nil {
		t.Fatal(err)
	}
	latinMeta := strings.Replace(latin, "<head>", `<head><meta charset="iso-8859-1">`, 1)
	wide, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(pageOf(goodTable))
	if err != nil {
		t.Fatal(err)
	}
	long := pageOf("<p>" + strings.Repeat("a ", 2000) + "</p>" + goodTable) // only ASCII in its first 1,024 bytes
	for _, c := range [][3]string{
		{"UTF-8", "text/html; charset=utf-8", pageOf(goodTable)},
		{"UTF-8 with a mark", "text/html", "\xef\xbb\xbf" + pageOf(goodTable)},
		{"UTF-8 that is called Latin", "text/html; charset=iso-8859-1", pageOf(goodTable)},
		{"UTF-8 late", "text/html", long},
		{"Latin by its header", "text/html; charset=windows-1252", latin},
		{"Latin by its meta element", "text/html", latinMeta},
		{"Latin without a word", "", latin},
		{"Latin that is called UTF-8", "text/html; charset=utf-8", latin},
		{"UTF-16 by its mark", "", wide},
		{"an unknown header", "text/html; charset=foo; ;", pageOf(goodTable)},
		{"both, without a word", "", strings.Replace(pageOf(goodTable), "<p>", "<p>a\xf1o ", 1)},
	} {
		t.Run(c[0], func(t *testing.T) {
			checkCase(t, oneField(), &Document{ContentType: c[1], Body: []byte(c[2])}, parseCase{want: []string{"test USD unspecified [58.90] []"}})
		})
	}
	broken := strings.Replace(pageOf(goodTable), "58.90", "58\xff.90", 1)
	checkCase(t, oneField(), &Document{ContentType: "text/html; charset=utf-8", Body: []byte(broken)}, parseCase{
		fails: Value, detail: "58ÿ.90",
	})
}

// botProtections are challenges as bot protections show them with status 200; synthetic, from their known marks.
func botProtections() map[string]string {
	return map[string]string{
		"Incapsula": `<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW"><script src="/_Incapsula_Resource?SWJIYLWA=1">` +
			`</script></head><body></body></html>`,
		"Incapsula, frame": `<html><body><iframe src="/_Incapsula_Resource?x=1">Request unsuccessful. Incapsula incident ID: 1-2</iframe></body></html>`,
		"Cloudflare":       `<!DOCTYPE html><html><head><title>Just a moment...</title></head><body><div>Checking</div></body></html>`,
		"Cloudflare, old": `<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head><body>` +
			strings.Repeat("<p>Why have I been blocked?</p>", 50) + `</body></html>`,
		"Akamai": `<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD><BODY><H1>Access Denied</H1>Reference #18.1 https://errors.edgesuite.net/18</BODY></HTML>`,
		"F5":     `<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Your support ID is: 123 12.34</body></html>`,
		"captcha": `<html><head></head><body><form><div class="g-recaptcha" data-sitekey="58.90"></div>Verifique que es humano</form>` +
			`</body></html>`,
		"half a page": `<html><head><title>Just a moment...</title></head><body>`,
		"data":        `{"url":"https://geo.captcha-delivery.com/captcha/"}`,
	}
}

func TestContent_Walls(t *testing.T) {
	sheet := sourceOf(Extract{Method: XLSXRows, Sheet: &Sheet{Year: "ano", Month: "mes", Day: "dia"}, Fields: []Field{{Side: BuySide}}})
	for name, page := range botProtections() {
		for _, d := range []*Definition{oneField(), referenceJSON(), sheet} {
			_, err := d.Parse(0, documentOf(page))
			if err == nil {
				t.Fatalf("%s is read by %s", name, d.Pages[0].Extract.Method)
			}
			t.Run(name+" for "+string(d.Pages[0].Extract.Method), func(t *testing.T) { wantFailure(t, err, Blocked, "bot protection") })
		}
	}
}

// A page with its rates is good, whatever scripts its bot protection adds; one with much text and no rates has
// changed, and is not blocked.
func TestContent_GoodPagesBehindWalls(t *testing.T) {
	const script = `<script src="/_Incapsula_Resource?x=1"></script><script src="/cdn-cgi/challenge-platform/x.js"></script><div class="g-recaptcha"></div>`
	checkCase(t, oneField(), documentOf(pageOf(script+goodTable)), parseCase{want: []string{"test USD unspecified [58.90] []"}})
	prose := "<p>" + strings.Repeat("Abra su cuenta de ahorros con nosotros. ", 50) + "</p>"
	checkCase(t, oneField(), documentOf(pageOf(script+prose)), parseCase{fails: Layout})
	checkCase(t, oneField(), documentOf(pageOf("<p>Mantenimiento</p>")), parseCase{fails: Layout})
}

func TestDocument_Challenge(t *testing.T) {
	for name, page := range map[string]string{
		"an error page": pageOf("<h1>Error 500</h1><p>Intente mas tarde</p>"), "nothing": "", "a workbook": "PK\x03\x04captcha", "JSON": `{"error":"x"}`,
	} {
		if mark := (&Document{Body: []byte(page)}).Challenge(); mark != "" {
			t.Errorf("%s is taken for a challenge by %q", name, mark)
		}
	}
}

// Pages that only an attack can mean are refused before selectors and patterns go through them.
func TestHTML_Limits(t *testing.T) {
	const childrenMax, nodesMax, tagsMax = 10_000, 100_000, 200_000 // of package markup
	fields := sourceOf(Extract{Method: HTMLFields, Fields: []Field{{Side: BuySide, Locator: Locator{At: "b:nth-child(2)", Pattern: `[0-9.]+`}}}})
	everywhere := sourceOf(Extract{Method: HTMLFields, Fields: []Field{
		{Side: BuySide, Locator: Locator{At: "b", Pattern: `x`}}, {Side: SellSide, Locator: Locator{At: "b", Pattern: `y`}},
	}})
	text := sourceOf(Extract{Method: TextRegex, Text: &Text{At: "body", Pattern: `(?P<buy>[0-9.]+)`}})
	plain := sourceOf(Extract{Method: TextRegex, Text: &Text{Pattern: `(?P<buy>[0-9.]+)`}})
	block := "<div>" + strings.Repeat("<p>", childrenMax/2) + "</div>"
	for _, c := range []struct {
		name, document string
		source         *Definition
		detail         string
	}{
		{"parts of one element", pageOf(strings.Repeat("<p></p>", childrenMax+1)), fields, "are accepted"},
		{"elements", pageOf(strings.Repeat(block, nodesMax/(childrenMax/2)+1)), fields, "more than 100000 elements"},
		{"tags", pageOf(strings.Repeat("</p>", tagsMax+1)), fields, "tags"},
		{"text at a place", pageOf("<p></p><b>" + strings.Repeat("58.90", patternBytesMax/5+1) + "</b>"), fields, "are searched"},
		{"text", pageOf(strings.Repeat("58.90", patternBytesMax/5+1)), text, "are searched"},
		{"plain text", strings.Repeat("58.90", patternBytesMax/5+1), plain, "are searched"},

		{"attributes", pageOf("<div class=\"" + strings.Repeat("a ", 1<<20) + "\"><p>" + strings.Repeat("<i></i>", 9_000)), fields, "attributes of an element"},
		{"searches", pageOf(strings.Repeat("<b>"+strings.Repeat(".", 1<<20-1)+"</b>", 5)), everywhere, "would search more than"},
		{"quotes", numbered(quotesMax+1, "58.%04d "), plain, "more than 500 quotes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.source.Parse(0, documentOf(c.document))
			wantFailure(t, err, WrongContent, c.detail)
		})
	}
	good := pageOf(strings.Repeat(block, 15) + "<div><i></i><b>58.90</b></div>")
	checkCase(t, fields, documentOf(good), parseCase{want: []string{"test USD unspecified [58.90] []"}})
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestD4_Markup: Parse says so, and so does the search for an address.
func TestD4_Markup(t *testing.T) {
	document := documentOf(pageOf(numbered(400, "<b a%d>") + strings.Repeat("<p>58.90", 50_000)))
	_, err := oneField().Parse(0, document)
	wantFailure(t, err, WrongContent, "within each other")
	if _, err := AttributeOf(document, "p", "a"); err == nil {
		t.Error("the page is searched for an address")
	}
}

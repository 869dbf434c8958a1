package simulated

import (
	"bytes"
	"embed"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/tasard/tasard/engine"
)

//go:embed pages/*.html
var pageFiles embed.FS

var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("pages").Funcs(template.FuncMap{
		"pre": prefixed, "post": suffixed, "two": twoDecimals, "spanish": spanishDate, "spanishDay": spanishDay,
		"house": houseLabel, "quezada": quezadaClass,
	}).ParseFS(pageFiles, "pages/*.html"))
})

// chrome is what the head and foot of a page need.
type chrome struct {
	*view
	Title, Phone, Charset string
}

// Site is the head and foot of a site.
func (v *view) Site(title, phone string) *chrome { return &chrome{v, title, phone, "utf-8"} }

// Latin is the same for a page in windows-1252, which says so in its head.
func (c *chrome) Latin() *chrome {
	c.Charset = "windows-1252"
	return c
}

// html is a page of pages/. One whose head says windows-1252 is made so in the end.
func html(file string, data any) document {
	var out bytes.Buffer
	if err := pages().ExecuteTemplate(&out, file, data); err != nil {
		panic("simulated: the embedded page " + file + " is damaged: " + err.Error())
	}
	d := document{contentType: contentHTML, body: out.Bytes()}
	if bytes.Contains(d.body, []byte(`charset="windows-1252"`)) {
		d.contentType, d.latin = "text/html", true // only the page itself names its character set
	}
	return d
}

// page is the route of a page of pages/ that needs nothing but the view.
func page(institution, host, path, file string) route {
	return route{
		method: http.MethodGet, host: host, path: path, institution: institution,
		render: func(v *view) document { return html(file, v) },
	}
}

// allRoutes are all addresses of all sites.
func allRoutes() []route {
	var all []route
	for _, family := range [][]route{
		bcrdRoutes(), bankPages(), bankServices(), associationPages(), housePages(), aggregatorRoutes(),
	} {
		all = append(all, family...)
	}
	return all
}

// latin writes text in windows-1252; what it has no byte for becomes a question mark.
func latin(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r == '€':
			out = append(out, 0x80)
		case r == '…':
			out = append(out, 0x85)
		case r < 0x80 || r >= 0xA0 && r <= 0xFF:
			out = append(out, byte(r))
		default:
			out = append(out, '?')
		}
	}
	return out
}

// prefixed is a text with something before it; nothing stays nothing.
func prefixed(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

func suffixed(text, after string) string {
	if text == "" {
		return ""
	}
	return text + after
}

// twoDecimals cuts a price to centavos, as the home page of the central bank does.
func twoDecimals(text string) string {
	if at := strings.Index(text, "."); at >= 0 && len(text) > at+3 {
		return text[:at+3]
	}
	return text
}

func spanishDate(at time.Time) string { return spanishDay(engine.DateOf(at)) }

func spanishDay(day engine.Date) string {
	months := []string{
		"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre",
	}
	at := localDay(day)
	return fmt.Sprintf("%d de %s de %d", at.Day(), months[at.Month()-1], at.Year())
}

func localDay(day engine.Date) time.Time { return day.Start().In(engine.Location()) }

var jsonNumber = regexp.MustCompile(`^(0|[1-9]\d*)(\.\d+)?$`)

// number is a side as a JSON number, null when there is none, a text when it is something else. A number ends with a digit that
// counts: 60.9, not 60.90.
func number(text string) string {
	switch {
	case text == "":
		return "null"
	case jsonNumber.MatchString(text):
		return shortest(text)
	}
	return quoted(text)
}

func shortest(text string) string {
	if strings.Contains(text, ".") {
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// quoted is a JSON text. What pages hold needs no escapes but those of %q, which JSON has too.
func quoted(text string) string { return fmt.Sprintf("%q", text) }

// text is a side as a JSON text, null when there is none.
func text(side string) string {
	if side == "" {
		return "null"
	}
	return quoted(side)
}

func jsonDocument(format string, args ...any) document {
	return document{contentType: contentJSON, body: fmt.Appendf(nil, format, args...)}
}

func sorry(v *view, status int, what string) document {
	body := fmt.Sprintf(`<!DOCTYPE html><html lang="es"><head><meta charset="utf-8"><title>%[1]s</title></head><body><h1>%[1]s</h1>
<p>Por favor intente m&aacute;s tarde o llame al 809-555-0199. C&oacute;digo 58.1173, %[2]s.</p></body></html>
`, what, spanishDate(v.Now))
	return document{contentType: contentHTML, body: []byte(body), status: status}
}

func missing(v *view) document { return sorry(v, http.StatusNotFound, "P&aacute;gina no encontrada") }

func robots(*view) document {
	return document{contentType: "text/plain; charset=utf-8", body: []byte(
		"User-agent: *\nDisallow: /wp-admin/\nDisallow: /admin/\nAllow: /wp-admin/admin-ajax.php\n")}
}

// wall is the page that a bot wall shows instead of the one that was asked for.
func wall(v *view) []byte {
	return fmt.Appendf(nil, `<html style="height:100%%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW"><meta name="format-detection" content="telephone=no">
<script type="text/javascript" src="/_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e6fffd425f7e032f3"></script></head>
<body style="margin:0px;height:100%%"><iframe id="main-iframe" src="/_Incapsula_Resource?CWUDNSAI=9&xinfo=8-58901234-0%%20NNNN%%20RT%%28%d%%29" frameborder=0 width="100%%" height="100%%">
Request unsuccessful. Incapsula incident ID: 1183000580060240-58901234567890123</iframe></body></html>
`, v.Now.Unix())
}

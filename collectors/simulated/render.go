package simulated

import (
	"archive/zip"
	"bytes"
	"embed"
	"fmt"
	"html"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/engine"
)

//go:embed pages
var pageFiles embed.FS

var (
	loopBlock   = regexp.MustCompile(`(?s)\{\{each ?(!?)(\w*)\}\}(.*?)\{\{end\}\}`)
	placeholder = regexp.MustCompile(`\{\{([^{}]*)\}\}`)
)

// renderPage renders a file of pages/. The first line of a JSON or text file is its content type. The first line of a
// page is the character set, a phone number and the title. top.html precedes every page, and bottom.html follows it.
// A .tsv file becomes a workbook; its first line is the name of the sheet. The placeholders are
//
//	{{usd.buy}}              a named text of a quote (see placeholders) or of the page (see values below)
//	{{RD$ |usd.buy| DOP|-}}  the text with "RD$ " before it and " DOP" after it; "-" if the text is empty
//	{{USD=Dólar|EUR=Euro}}   a choice by the currency, channel or institution of the quote
//	{{each}} ... {{end}}     repeated for each quote, in JSON with commas between; {{each cash}}: only for that channel,
//	                         {{each !cash}}: only for the others
func renderPage(file string, v *pageData, quotes []shownQuote, extra map[string]string) document {
	head, body, _ := strings.Cut(pageFile(file), "\n")
	switch path.Ext(file) {
	case ".html":
	case ".tsv":
		return document{contentType: contentWorkbook, body: workbook(head, fillPage(body, v, quotes, nil, ""))}
	default:
		return document{contentType: head, body: []byte(fillPage(strings.TrimSpace(body), v, quotes, extra, ","))}
	}
	meta := strings.SplitN(fillPlaceholders(head, extra), " ", 3)
	values := map[string]string{"charset": meta[0], "phone": meta[1], "title": meta[2], "loans": pageFile("loans.html")}
	maps.Copy(values, extra)
	return document{contentType: contentHTML, body: []byte(fillPage(pageFile("top.html")+body+pageFile("bottom.html"), v, quotes, values, ""))}
}

// fillPage replaces the placeholders of a page. separator separates the quotes of a repeated part.
func fillPage(text string, v *pageData, quotes []shownQuote, extra map[string]string, separator string) string {
	values := map[string]string{
		"today": spanishDay(engine.DateOf(v.Now)), "year": strconv.Itoa(v.Now.Year()), "hour": v.Now.Format("02/01/2006 03:04 PM"),
		"utc": v.Now.UTC().Format(time.RFC3339), "now": v.Now.Format("2006-01-02T15:04:05"),
		"isoDay": v.Now.Format(time.DateOnly),
	}
	maps.Copy(values, extra)
	text = loopBlock.ReplaceAllStringFunc(text, func(block string) string {
		match, rows := loopBlock.FindStringSubmatch(block), []string{}
		for _, q := range quotes {
			if match[2] == "" || (match[2] == string(q.Channel)) == (match[1] == "") {
				row := maps.Clone(values)
				maps.Copy(row, q.placeholders(""))
				rows = append(rows, fillPlaceholders(match[3], row))
			}
		}
		return strings.Join(rows, separator)
	})
	// Of several quotes of a currency, the one without a channel is used, or else the first.
	for _, q := range slices.Backward(quotes) {
		if prefix := strings.ToLower(q.Currency) + "."; values[prefix+"channel"] != string(engine.Unspecified) {
			maps.Copy(values, q.placeholders(prefix))
		}
	}
	return fillPlaceholders(text, values)
}

// placeholders returns the texts of a quote by the names of their placeholders.
func (q shownQuote) placeholders(prefix string) map[string]string {
	instant, published := "", q.PublishedAt.In(engine.Location())
	if !published.IsZero() {
		instant = published.Format(time.RFC3339)
	}
	return map[string]string{
		prefix + "instant": instant,
		prefix + "buy":     q.Buy, prefix + "sell": q.Sell, prefix + "buy2": twoDecimals(q.Buy), prefix + "sell2": twoDecimals(q.Sell),
		prefix + "buyNumber": jsonNumberOrNull(q.Buy), prefix + "sellNumber": jsonNumberOrNull(q.Sell),
		prefix + "date": q.EffectiveDate.String(), prefix + "cells": strings.ReplaceAll(spanishDay(q.EffectiveDate), " de ", "\t"), prefix + "day": spanishDay(q.EffectiveDate), prefix + "minute": published.Format("02/01/2006 15:04"),
		prefix + "currency": q.Currency, prefix + "channel": string(q.Channel), q.Currency + ".buy": q.Buy, q.Currency + ".sell": q.Sell,
		prefix + "name": q.Name, "institution": q.InstitutionID, prefix + "slug": strings.NewReplacer(" ", "-", "ó", "o", "é", "e").Replace(strings.ToLower(q.Name)),
	}
}

// fillPlaceholders replaces all placeholders except {{each}}, which renderPage replaces.
func fillPlaceholders(text string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(text, func(block string) string {
		parts := strings.Split(strings.Trim(block, "{}"), "|")
		if key, _, isChoice := strings.Cut(parts[0], "="); isChoice && strings.Trim(key, asciiAlphabet) == "" {
			for _, part := range parts {
				if key, choice, _ := strings.Cut(part, "="); key != "" && slices.Contains([]string{values["currency"], values["channel"], values["institution"]}, key) {
					return choice
				}
			}
			return ""
		}
		if len(parts) == 1 {
			parts = []string{"", parts[0]}
		}
		parts = append(parts, "", "")
		if value := values[parts[1]]; value != "" {
			return parts[0] + value + parts[2]
		}
		return parts[3]
	})
}

const asciiAlphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func pageFile(name string) string {
	text, err := pageFiles.ReadFile("pages/" + name)
	if err != nil {
		panic("simulated: the embedded page " + name + " is missing")
	}
	return string(text)
}

// twoDecimals truncates a price to centavos, like the central bank's home page.
func twoDecimals(text string) string {
	if dot := strings.Index(text, "."); dot >= 0 && len(text) > dot+3 {
		return text[:dot+3]
	}
	return text
}

func spanishDay(day engine.Date) string {
	months := []string{
		"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre",
	}
	date := localDay(day)
	return fmt.Sprintf("%d de %s de %d", date.Day(), months[date.Month()-1], date.Year())
}

func localDay(day engine.Date) time.Time { return day.Start().In(engine.Location()) }

var jsonNumber = regexp.MustCompile(`^(0|[1-9]\d*)(\.\d+)?$`)

// jsonNumberOrNull returns a price as a JSON number without trailing zeros, a missing price as null, and other text as
// a JSON string.
func jsonNumberOrNull(text string) string {
	switch {
	case text == "":
		return "null"
	case jsonNumber.MatchString(text):
		return trimZeros(text)
	}
	return jsonString(text)
}

func trimZeros(text string) string {
	if strings.Contains(text, ".") {
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// jsonString returns a JSON string. The texts here need only escapes that are the same in Go and JSON.
func jsonString(text string) string { return fmt.Sprintf("%q", text) }

func errorPage(status int, title string) document {
	body := fmt.Sprintf(`<!DOCTYPE html><html lang="es"><head><meta charset="utf-8"><title>%[1]s</title></head><body><h1>%[1]s</h1>
<p>Por favor intente m&aacute;s tarde o llame al 809-555-0199. C&oacute;digo 58.1173.</p></body></html>
`, title)
	return document{contentType: contentHTML, body: []byte(body), status: status}
}

const contentWorkbook = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

// workbook returns an XLSX file with one sheet, from the parts in pages/workbook.txt. Excelize's writer is not used,
// because it finds methods by name, which would make the program 6.5 MB larger.
func workbook(sheet, table string) []byte {
	var rows strings.Builder
	for line := range strings.SplitSeq(table, "\n") {
		rows.WriteString("<row>")
		for cell := range strings.SplitSeq(line, "\t") {
			form := `<c t="inlineStr"><is><t>%s</t></is></c>`
			if jsonNumber.MatchString(cell) {
				form = "<c><v>%s</v></c>"
			}
			fmt.Fprintf(&rows, form, html.EscapeString(cell))
		}
		rows.WriteString("</row>")
	}
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for part := range strings.SplitSeq(fillPlaceholders(pageFile("workbook.txt"), map[string]string{"sheet": sheet, "rows": rows.String()}), "\n\n") {
		name, content, _ := strings.Cut(part, "\n")
		w, err := archive.Create(name)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			panic("simulated: writing into memory fails: " + err.Error())
		}
	}
	if err := archive.Close(); err != nil {
		panic("simulated: writing into memory fails: " + err.Error())
	}
	return out.Bytes()
}

package source_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// object is a JSON object that is written; keys with nothing in them are left out.
type object map[string]any

func (o object) put(key, text string) object {
	if text != "" {
		o[key] = text
	}
	return o
}

func sameMeaning(a, b *source.Definition) bool { return reflect.DeepEqual(a, b) }

// writtenText leaves every character as it is: bodies are compared byte by byte.
func writtenText(t *testing.T, d *source.Definition) []byte {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(written(d)); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// written is a definition in the form of its file.
func written(d *source.Definition) object {
	o := object{
		"priority": d.Priority, "decimalsMax": d.DecimalsMax, "ignoreRobots": d.IgnoreRobots, "plainHttp": d.PlainHTTP,
		"expiry": object{"afterCheck": d.Expiry.AfterCheck.String()}.put("afterDate", spanText(d.Expiry.AfterDate)),
	}
	o.put("id", d.ID).put("name", d.Name).put("url", d.URL).put("institution", d.Institution).put("upstreamSource", d.UpstreamSource)
	o.put("kind", string(d.Kind)).put("channel", string(d.Channel)).put("language", d.Language).put("decimal", string(d.Decimal))
	o.put("caFile", d.CAFile).put("disabled", d.Disabled).put("note", d.Note)
	bounds, pages := []object{}, []object{}
	for _, bound := range d.Bounds {
		bounds = append(bounds, writtenBound(bound))
	}
	for i := range d.Pages {
		pages = append(pages, writtenPage(&d.Pages[i]))
	}
	o["bounds"], o["pages"] = bounds, pages
	return o
}

func spanText(span time.Duration) string {
	if span == 0 {
		return ""
	}
	return span.String()
}

func writtenBound(b engine.Bound) object {
	o := object{}.put("currency", b.Currency).put("lowest", b.Lowest.String()).put("highest", b.Highest.String())
	if !b.Until.IsZero() {
		o.put("until", b.Until.String())
	}
	if b.JumpPermille != 0 {
		o["jumpPermille"] = b.JumpPermille
	}
	if b.SidesDiffer {
		o["sidesDiffer"] = true
	}
	return o
}

func writtenPage(p *source.Page) object {
	requests := []object{}
	for _, r := range p.Requests {
		o := object{}.put("method", r.Method).put("url", r.URL)
		if r.AddressFrom != nil {
			o["addressFrom"] = object{}.put("selector", r.AddressFrom.Selector).put("attribute", r.AddressFrom.Attribute)
		}
		if r.Headers != nil {
			o["headers"] = r.Headers
		}
		if r.Form != nil {
			o["form"] = r.Form
		}
		if r.JSON != "" {
			o["json"] = json.RawMessage(r.JSON)
		}
		requests = append(requests, o)
	}
	page := object{"requests": requests, "fragment": p.Fragment, "extract": writtenExtract(&p.Extract)}
	return page.put("name", p.Name).put("institution", p.Institution).put("currency", p.Currency)
}

func writtenExtract(e *source.Extract) object {
	o := object{"method": string(e.Method)}
	if e.Fields != nil {
		fields := []object{}
		for _, f := range e.Fields {
			field := writtenPlace(f.Place).put("currency", f.Currency).put("side", string(f.Side)).put("channel", string(f.Channel))
			if !f.From.IsZero() {
				field.put("from", f.From.String())
			}
			fields = append(fields, field)
		}
		o["fields"] = fields
	}
	if e.Rows != nil {
		o["rows"] = writtenRows(e.Rows)
	}
	if e.Text != nil {
		text := object{"min": e.Text.Min}.put("at", e.Text.At).put("pattern", e.Text.Pattern).put("unless", e.Text.Unless)
		if e.Text.Labels != nil {
			text["labels"] = writtenLabels(e.Text.Labels)
		}
		o["text"] = text
	}
	if e.Sheet != nil {
		o["sheet"] = object{}.put("name", e.Sheet.Name).put("year", e.Sheet.Year).put("month", e.Sheet.Month).put("day", e.Sheet.Day)
	}
	if e.Date != nil {
		o["date"] = writtenDate(e.Date)
	}
	if e.Expect != nil {
		expect := []object{}
		for _, one := range e.Expect {
			expect = append(expect, object{}.put("path", one.Path).put("value", one.Value).put("at", one.At).put("pattern", one.Pattern))
		}
		o["expect"] = expect
	}
	return o
}

func writtenRows(r *source.Rows) object {
	o := object{"label": writtenPlace(r.Label), "labels": writtenLabels(r.Labels), "min": r.Min}.put("at", r.At).put("unless", r.Unless)
	for key, place := range map[string]*source.Place{"buy": r.Buy, "sell": r.Sell, "value": r.Value} {
		if place != nil {
			o[key] = writtenPlace(*place)
		}
	}
	if r.Ignore != nil {
		o["ignore"] = r.Ignore
	}
	if r.Date != nil {
		o["date"] = writtenDate(r.Date)
	}
	return o
}

func writtenLabels(labels map[string]source.Target) object {
	o := object{}
	for label, t := range labels {
		o[label] = object{}.put("institution", t.Institution).put("currency", t.Currency).put("channel", string(t.Channel)).put("side", string(t.Side))
	}
	return o
}

func writtenPlace(p source.Place) object {
	return object{}.put("at", p.At).put("attribute", p.Attribute).put("column", p.Column).put("pattern", p.Pattern)
}

func writtenDate(d *source.Date) object { return writtenPlace(d.Place).put("form", string(d.Form)) }

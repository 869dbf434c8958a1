package simulated

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Fault is a defect of a website with rates, imitated by the simulated site. Real sites have most of them.
type Fault string

// Faults of prices and of documents.
const (
	Zeros         Fault = "zeros"          // every price is 0.00, as in a page before its script has filled it
	Swapped       Fault = "swapped"        // buy and sell are exchanged
	SameTwice     Fault = "same-twice"     // both sides show the sell price
	LostDecimal   Fault = "lost-decimal"   // 5890 instead of 58.90
	DecimalComma  Fault = "decimal-comma"  // 58,90 instead of 58.90
	WrongCurrency Fault = "wrong-currency" // each quote has the prices of another currency
	MissingSide   Fault = "missing-side"   // the sell side is missing
	Footnote      Fault = "footnote"       // a superscript 1 follows each price
	NotAvailable  Fault = "not-available"  // N/A instead of every price
	Reordered     Fault = "reordered"      // rows in reverse order, with the right labels

	Layout    Fault = "layout"     // classes, ids, keys and headings are renamed
	Challenge Fault = "challenge"  // challenge page of a bot protection, with status 200
	Forbidden Fault = "forbidden"  // challenge page of a bot protection, with status 403
	EmptyBody Fault = "empty"      // status 200 with an empty body
	Half      Fault = "half"       // page or workbook cut off in the middle
	ErrorPage Fault = "error-page" // HTML error page with status 200
	Hang      Fault = "hang"       // no response until the client gives up
)

const footnoteMark = "¹"

// Faults returns all faults.
func Faults() []Fault {
	return []Fault{
		Zeros, Swapped, SameTwice, LostDecimal, DecimalComma, WrongCurrency, MissingSide, Footnote, NotAvailable, Reordered,
		Layout, Challenge, Forbidden, EmptyBody, Half, ErrorPage, Hang,
	}
}

// SetFault sets the fault of a source's documents, until another SetFault. id may have the prefix demo-. The fault ""
// means no fault.
func (s *Site) SetFault(id string, fault Fault) error {
	id = strings.TrimPrefix(id, demoPrefix)
	if _, known := s.definitions.Find(id); !known {
		return fmt.Errorf("%q is not the id of a source", id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[id] = fault
	return nil
}

// fault returns the first fault of some sources.
func (s *Site) fault(sources []string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range sources {
		if fault := s.faults[id]; fault != "" {
			return fault
		}
	}
	return ""
}

// changePrices applies a fault of prices to v.quotesShown.
func (v *pageData) changePrices() {
	original := slices.Clone(v.quotesShown)
	for i := range v.quotesShown {
		q := &v.quotesShown[i]
		switch v.fault {
		case Swapped:
			q.Buy, q.Sell = q.Sell, q.Buy
		case SameTwice:
			q.Buy = q.Sell
		case MissingSide:
			q.Sell = ""
		case WrongCurrency:
			q.Buy, q.Sell = v.fault.price(q.Buy), v.fault.price(q.Sell)
			for _, other := range original {
				if other.InstitutionID == q.InstitutionID && other.Currency != q.Currency && other.Kind == q.Kind {
					q.Buy, q.Sell = other.Buy, other.Sell
					break
				}
			}
		default:
			q.Buy, q.Sell = v.fault.price(q.Buy), v.fault.price(q.Sell)
		}
	}
	if v.fault == Reordered {
		slices.Reverse(v.quotesShown)
	}
}

// price applies a fault to the text of a price. A missing price ("") stays missing.
func (f Fault) price(text string) string {
	if text == "" {
		return ""
	}
	switch f {
	case Zeros:
		return "0.00"
	case LostDecimal:
		return strings.Replace(text, ".", "", 1)
	case DecimalComma:
		return strings.Replace(text, ".", ",", 1)
	case Footnote:
		return text + footnoteMark
	case NotAvailable:
		return "N/A"
	case WrongCurrency: // near the price of a Canadian dollar
		_, decimals, _ := strings.Cut(text, ".")
		return "41." + decimals
	default:
		return text
	}
}

// changeDocument applies a fault that changes or replaces documents.
func (f Fault) changeDocument(d document) document {
	isHTML := strings.HasPrefix(d.contentType, "text/html")
	switch f {
	case Layout:
		d.body = redesigned(d)
	case Challenge:
		d = document{contentType: contentHTML, body: []byte(challengePage)}
	case Forbidden:
		d = document{contentType: contentHTML, body: []byte(challengePage), status: http.StatusForbidden}
	case ErrorPage:
		d = errorPage(0, "Ha ocurrido un error inesperado")
	case EmptyBody:
		d.body = []byte{}
	case Half:
		d.body = d.body[:len(d.body)/2]
	case Footnote:
		if isHTML {
			d.body = regexp.MustCompile(footnoteMark+`(\s*<)`).ReplaceAll(d.body, []byte("<sup>1</sup>$1"))
		}
		d.body = bytes.ReplaceAll(d.body, []byte(footnoteMark), []byte(" 1"))
	}
	return d
}

// redesigned renames classes, ids, keys and headings, like a redesign of the page. A workbook stays as it is.
func redesigned(d document) []byte {
	type change struct{ from, to string }
	changes := []change{{`"([A-Za-z_]\w*)"\s*:`, `"${1}V2":`}}
	switch {
	case strings.HasPrefix(d.contentType, "text/html"):
		changes = []change{
			{`(class|id)="`, `$1="nuevo-`}, {`(class="[^" ]*) ([^"]*")`, `$1 nuevo-$2`}, {`\bdata-`, `data-nuevo-`},
			{`(?i)compra(mos)?\b`, `Recibimos`}, {`(?i)(venta|vendemos)\b`, `Entregamos`},
		}
	case strings.HasPrefix(d.contentType, "text/plain"):
		changes = []change{{`^`, `v2;`}}
	case d.contentType == contentWorkbook:
		return d.body
	}
	body := slices.Clone(d.body)
	for _, c := range changes {
		body = regexp.MustCompile(c.from).ReplaceAll(body, []byte(c.to))
	}
	return body
}

const challengePage = `<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW">
<script type="text/javascript" src="/_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e6fffd425f7e032f3"></script></head>
<body style="margin:0px;height:100%"><iframe id="main-iframe" src="/_Incapsula_Resource?CWUDNSAI=9&xinfo=8-58901234-0" frameborder=0>
Request unsuccessful. Incapsula incident ID: 1183000580060240-58901234567890123</iframe></body></html>
`

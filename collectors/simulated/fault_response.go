package simulated

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	hugeBytes   = 1 << 30
	chunkBytes  = 64 << 10
	memberBytes = 4 << 20  // blanks in one gzip member of the fault Bomb
	memberCount = 2560     // gzip members of Bomb: 10 GiB of blanks
	sheetBytes  = 48 << 20 // blanks in a workbook of Bomb, more than a reader should decompress
	footnote    = "¹"
)

// applyResponseFault applies a fault that replaces or delays the response: it sends the response and returns true. If
// v.fault is of another kind, it sends nothing and returns false.
func (s *Site) applyResponseFault(w http.ResponseWriter, r *http.Request, rt *route, v *pageData) bool {
	switch v.fault {
	case ServerError:
		send(w, r, errorPage(v, http.StatusInternalServerError, "Error interno del servidor"))
	case TooMany:
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		send(w, r, errorPage(v, http.StatusTooManyRequests, "Demasiadas solicitudes"))
	case Forbidden:
		send(w, r, document{contentType: contentHTML, body: botWallPage(v), status: http.StatusForbidden})
	case Redirect:
		http.Redirect(w, r, "https://"+otherHost+r.URL.RequestURI(), http.StatusFound)
	case RedirectLoop:
		http.Redirect(w, r, "https://"+rt.host+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	case Hang:
		s.waitForEnd(r)
		panic(http.ErrAbortHandler) // returning would send an empty response
	case HangBody, Trickle:
		s.sendSlowly(w, r, v.document(rt), v.fault == Trickle)
	case Huge:
		sendHuge(w, v.document(rt))
	case Bomb:
		s.sendBomb(w, v.document(rt))
	default:
		return false
	}
	return true
}

// waitForEnd waits until the client disconnects or the site is closed.
func (s *Site) waitForEnd(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closing:
	}
}

// With trickle, sendSlowly sends one byte of the document every s.pace. Without trickle, it sends half of the document
// and then nothing more, until the client disconnects or the site is closed.
func (s *Site) sendSlowly(w http.ResponseWriter, r *http.Request, d document, trickle bool) {
	w.Header().Set("Content-Type", d.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(d.body)))
	flush := http.NewResponseController(w).Flush
	if !trickle {
		_, _ = w.Write(d.body[:len(d.body)/2]) // the client may be gone
		_ = flush()
		s.waitForEnd(r)
		return
	}
	ticker := time.NewTicker(s.pace)
	defer ticker.Stop()
	for i := range d.body {
		if _, err := w.Write(d.body[i : i+1]); err != nil || flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
	}
}

// sendHuge sends the document and blanks after it, 1 GiB in total.
func sendHuge(w http.ResponseWriter, d document) {
	w.Header().Set("Content-Type", d.contentType)
	_, err := w.Write(d.body)
	blanks := bytes.Repeat([]byte(" "), chunkBytes)
	for sent := len(d.body); sent < hugeBytes && err == nil; sent += chunkBytes {
		_, err = w.Write(blanks)
	}
}

// sendBomb sends a small response that decompresses to a very large document. It is a gzip stream of many members, or a
// workbook with a sheet of blanks.
func (s *Site) sendBomb(w http.ResponseWriter, d document) {
	w.Header().Set("Content-Type", d.contentType)
	if d.contentType == contentWorkbook { // bcrdWorkbook has added the blanks
		_, _ = w.Write(d.body) // the client may be gone
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	_, err := w.Write(gzipped(d.body))
	for i := 0; i < memberCount && err == nil; i++ {
		_, err = w.Write(s.blanks())
	}
}

func gzippedBlanks() []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = io.Copy(w, io.LimitReader(blankReader{}, memberBytes)) // from memory into memory
	_ = w.Close()
	return out.Bytes()
}

// blankReader is an endless reader of blanks.
type blankReader struct{}

func (blankReader) Read(p []byte) (int, error) { return copy(p, blanks), nil }

const blanks = "                                                                                                                                "

// applyDocumentFault returns the document with v.fault applied, if this fault changes or replaces documents.
func (v *pageData) applyDocumentFault(d document) document {
	switch v.fault {
	case Layout:
		d.body = redesigned(d)
	case Challenge:
		d = document{contentType: contentHTML, body: botWallPage(v)}
	case Forbidden:
		d = document{contentType: contentHTML, body: botWallPage(v), status: http.StatusForbidden}
	case ErrorPage:
		d = errorPage(v, 0, "Ha ocurrido un error inesperado")
	case EmptyBody:
		d.body, d.modified = nil, time.Time{}
	case Half:
		d.body = d.body[:len(d.body)/2]
	case Footnote:
		d.body = raisedFootnote(d)
	default:
	}
	return d
}

// raisedFootnote replaces each footnote mark by <sup>1</sup> in HTML, and by a separate digit elsewhere.
func raisedFootnote(d document) []byte {
	body := d.body
	if strings.HasPrefix(d.contentType, "text/html") {
		body = regexp.MustCompile(footnote+`(\s*<)`).ReplaceAll(body, []byte("<sup>1</sup>$1"))
	}
	return bytes.ReplaceAll(body, []byte(footnote), []byte(" 1"))
}

// redesigned renames classes, ids, keys and headings, like a redesign of the page.
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
	case d.contentType == contentWorkbook: // bcrdWorkbook has renamed its headings
		return d.body
	}
	body := slices.Clone(d.body)
	for _, c := range changes {
		body = regexp.MustCompile(c.from).ReplaceAll(body, []byte(c.to))
	}
	return body
}

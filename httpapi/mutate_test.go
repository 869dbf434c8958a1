package httpapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/httpapi/internal/params"
)

// mutationSeed is printed; TASARD_SEED repeats a run.
func mutationSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(bubbleNow().UnixNano())
	if text := os.Getenv("TASARD_SEED"); text != "" {
		seed = must(strconv.ParseUint(text, 10, 64))
	}
	t.Logf("seed %d; TASARD_SEED=%d repeats it", seed, seed)
	return seed
}

func mutationWords() []string {
	return []string{
		"\r\n", "\n", "\r", "\r\n\r\n", "\x00", " ", "\t", ":", ",", ";", "/", "?", "#", "%", "%00", "%zz", "&", "=", "\x1b", "\x7f", "\xff", "\xe2\x80\xa8",
		"Content-Length: 5\r\n", "Content-Length: 0\r\n", "Content-Length: 99999999999999999999\r\n", "Transfer-Encoding: chunked\r\n",
		"Transfer-Encoding: identity\r\n", "Expect: 100-continue\r\n", "Connection: close\r\n", "Connection: keep-alive\r\n", "Host: b\r\n",
		"Upgrade: h2c\r\n", "Authorization: Basic YQ==\r\n", " HTTP/1.1\r\n", "HTTP/2.0", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "0\r\n\r\n", "1\r\na\r\n",
		"ffffffffffffffff\r\n", "currency=", "limit=-1", "cursor=99999999999999999999", "amount=1e9", "from=0000-00-00", "{", "}", "\"", "[[", "\\u0000", "null",
		strings.Repeat("a", 300), strings.Repeat("X-A: b\r\n", 120), strings.Repeat("a", 9000),
	}
}

func mutate(random *rand.Rand, b []byte, bases [][]byte, words []string) []byte {
	if len(b) == 0 {
		return b
	}
	at := random.IntN(len(b))
	end := min(len(b), at+1+random.IntN(1+random.IntN(64)))
	switch random.IntN(9) {
	case 0: // a bit
		b[at] ^= 1 << random.IntN(8)
	case 1: // a byte
		b[at] = byte(random.IntN(256))
	case 2: // cut off
		b = b[:at]
	case 3: // something missing
		b = slices.Delete(b, at, end)
	case 4: // something twice
		b = slices.Insert(b, end, bytes.Clone(b[at:end])...)
	case 5, 6: // something that does not belong there
		b = slices.Insert(b, at, []byte(words[random.IntN(len(words))])...)
	case 7: // a line of another request
		lines := bytes.SplitAfter(bases[random.IntN(len(bases))], []byte("\r\n"))
		b = slices.Insert(b, at, lines[random.IntN(len(lines))]...)
	case 8: // two places exchanged
		other := random.IntN(len(b))
		b[at], b[other] = b[other], b[at]
	}
	return b
}

// framingProblem reads what a server wrote more strictly than any client: answers and nothing else, each of the
// length that it announces, none behind one that ends the connection, none of the server's own faults. methods are
// those of the requests that were answered, as far as they are known. It returns "" or what is wrong.
func framingProblem(out []byte, methods []string) string {
	answers, closes := 0, false
	for wire := bufio.NewReader(bytes.NewReader(out)); ; {
		if _, err := wire.Peek(1); err != nil {
			break
		}
		if closes {
			return fmt.Sprintf("more behind answer %d, which ends the connection", answers)
		}
		method := ""
		if answers < len(methods) {
			method = methods[answers]
		}
		head, _ := wire.Peek(len("HTTP/1.1 100 Continue\r\n\r\n"))
		if string(head) == "HTTP/1.1 100 Continue\r\n\r\n" {
			_, _ = wire.Discard(len(head))
			continue
		}
		problem := ""
		if closes, problem = oneAnswer(wire, method); problem != "" {
			return fmt.Sprintf("answer %d: %s", answers+1, problem)
		}
		answers++
	}
	if len(methods) > 0 && (answers < len(methods) || answers > len(methods)+1) {
		return fmt.Sprintf("%d answers to %d requests", answers, len(methods))
	}
	return ""
}

// oneAnswer judges one answer. An unknown method is one that the server could not read.
func oneAnswer(wire *bufio.Reader, method string) (closes bool, problem string) {
	response, err := http.ReadResponse(wire, &http.Request{Method: method})
	if err != nil {
		return false, err.Error()
	}
	defer response.Body.Close()
	switch {
	case response.Proto != "HTTP/1.1" || response.StatusCode >= 500 && response.StatusCode != http.StatusNotImplemented || response.StatusCode < 200:
		return false, response.Status
	case len(response.TransferEncoding) > 0 || len(response.Header.Values("Content-Length")) > 1:
		return false, "it is chunked, or has two lengths"
	case len(response.Header.Values(headerRequestID)) != 1:
		return false, fmt.Sprintf("%d request ids", len(response.Header.Values(headerRequestID)))
	case response.StatusCode == 204 || response.StatusCode == 304 || method == "HEAD":
		return response.Close, ""
	}
	body, err := io.ReadAll(response.Body)
	switch {
	case method == "" && response.Close && len(body) == 0:
		return true, "" // to a HEAD that could not be read
	case err != nil || response.ContentLength < 0:
		return false, fmt.Sprintf("%d: length %d, %d bytes are there: %v", response.StatusCode, response.ContentLength, len(body), err)
	}
	return response.Close, bodyProblem(response.StatusCode, body, response.Header.Get("Content-Encoding") == "gzip")
}

// bodyProblem: each body is one JSON value, that of a refusal the error object.
func bodyProblem(status int, body []byte, packed bool) string {
	if packed {
		unpacker, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return err.Error()
		}
		if body, err = io.ReadAll(unpacker); err != nil {
			return err.Error()
		}
	}
	if !json.Valid(body) || status >= 400 && !bytes.HasPrefix(body, []byte(`{"error":{"code":"`)) {
		return fmt.Sprintf("%d with the body %.100q", status, body)
	}
	return ""
}

// grammars are the parameters' grammars as the contract writes them: the oracle of FuzzQuery.
func grammars() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"currency":    regexp.MustCompile(`^[A-Z]{3}$`),
		"institution": regexp.MustCompile(`^[a-z0-9-]+$`),
		"channel":     regexp.MustCompile(`^(unspecified|branch|digital|cash|transfer)$`),
		"kind":        regexp.MustCompile(`^(commercial|reference)$`),
		"operation":   regexp.MustCompile(`^(buy|sell)$`),
		"amount":      regexp.MustCompile(`^[0-9]{1,12}([.][0-9]{1,2})?$`),
		"limit":       regexp.MustCompile(`^([1-9]|[1-9][0-9]|1[0-9][0-9]|200)$`),
		"cursor":      regexp.MustCompile(`^(0|[1-9][0-9]{0,4}|100000)$`),
		"from":        regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`),
		"to":          regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`),
	}
}

// grammatical tells by the oracle whether a value is right by itself.
func grammatical(name, value string) bool {
	if !grammars()[name].MatchString(value) || strings.HasSuffix(value, "\n") {
		return false
	}
	if name == "from" || name == "to" {
		date, err := time.Parse(time.DateOnly, value)
		return err == nil && date.Year() > 0
	}
	return true
}

// FuzzQuery: the parser refuses exactly the parameters that are wrong by the grammars, and takes the others as they
// were sent.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"currency=USD&operation=buy&amount=12.50", "currency=usd&limit=0&cursor=00", "limit=200&limit=1&&", "from=2025-02-29&to=2025-01-01",
		"a%62c=%zz&currency=%55SD", "token=x&=1&=", "institution=a-b&channel=cash&kind=reference", "amount=.5&operation=", "from=2020-01-01",
	} {
		for op := range 7 {
			f.Add(seed, uint8(op))
		}
	}
	for name := range grammars() { // each with every value near the edges of a grammar, as it is and escaped
		for _, value := range probes() {
			for op := range 7 {
				f.Add(name+"="+value, uint8(op))
				f.Add(name+"="+url.QueryEscape(value)+"%20", uint8(op))
			}
		}
	}
	table := params.NewTable()
	options := params.Options{Catalogue: fakeCatalogue(), Today: engine.DateOf(fakeNow())}
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		op := params.Operation(1) << (which % 7)
		var q params.Query
		problems := table.Read(&q, op, []byte(params.InstitutionPath+"bhd"), []byte(text), options)
		if len(problems) >= params.ProblemsMax {
			return
		}
		want := expectedProblems(&table, op, text)
		var got []string
		for _, p := range problems {
			if p.Message == params.ProblemRangeReversed || p.Message == params.ProblemRangeTooLong {
				continue
			}
			got = append(got, p.Name+" "+strconv.Itoa(p.Index))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q for %d: problems %q, want %q", text, op, got, want)
		}
		if len(problems) == 0 && op == params.History && int(q.To)-int(q.From) > engine.HistoryRangeDaysMax {
			t.Fatalf("%q: %s to %s", text, q.From, q.To)
		}
		if body := appendError(nil, "c", "m", "i", problems); !json.Valid(body) || !utf8.Valid(body) {
			t.Fatalf("%q: the answer is no JSON: %s", text, body)
		}
	})
}

// expectedProblems reads a query with the standard library and the grammars.
func expectedProblems(table *params.Table, op params.Operation, text string) (want []string) {
	seen := map[string]int{}
	for _, pair := range strings.Split(text, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.PathUnescape(rawName)
		if err != nil {
			want = append(want, rawName[:min(len(rawName), params.NameBytesMax)]+" 0")
			continue
		}
		p := slices.IndexFunc(table[:], func(p params.Row) bool { return p.Name == name && p.AllowedBy&op != 0 })
		if p < 0 {
			part := name[:min(len(name), params.NameBytesMax)] + " 0"
			if !slices.Contains(want, part) {
				want = append(want, part)
			}
			continue
		}
		value, err := url.PathUnescape(rawValue)
		if index := seen[name]; index > 0 || err != nil || !grammatical(name, value) {
			want = append(want, name+" "+strconv.Itoa(index))
		}
		seen[name]++
	}
	for _, p := range table {
		if p.RequiredBy&op != 0 && seen[p.Name] == 0 {
			want = append(want, p.Name+" 0")
		}
	}
	return want
}

// latin makes each byte a character, so that a regular expression sees bytes.
func latin(text string) string {
	var out strings.Builder
	for i := range len(text) {
		out.WriteRune(rune(text[i]))
	}
	return out.String()
}

package httpapi

import (
	"encoding/json"
	"net/url"
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

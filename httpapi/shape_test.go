package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// shape judges one JSON value; closed objects judge names and their order too (interface §2, K8).
type shape func(raw json.RawMessage) error

// member is one field of an object.
type member struct {
	name  string
	shape shape
}

// closed is an object of exactly these fields in this order.
func closed(members ...member) shape {
	return func(raw json.RawMessage) error {
		names, values, err := orderedObject(raw)
		if err != nil {
			return err
		}
		var want []string
		for _, m := range members {
			want = append(want, m.name)
		}
		if !slices.Equal(names, want) {
			return fmt.Errorf("the fields are %v, want %v", names, want)
		}
		for i, m := range members {
			if err := m.shape(values[i]); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
		return nil
	}
}

// orderedObject reads an object without losing order or repeated names.
func orderedObject(raw json.RawMessage) (names []string, values []json.RawMessage, err error) {
	if !json.Valid(raw) {
		return nil, nil, fmt.Errorf("%.40s is no JSON", raw)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, nil, fmt.Errorf("%.40s is no object", raw)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, nil, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, nil, err
		}
		names, values = append(names, name.(string)), append(values, value)
	}
	return names, values, nil
}

func arrayOf(item shape) shape {
	return func(raw json.RawMessage) error {
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil || items == nil {
			return fmt.Errorf("%.40s is no array", raw)
		}
		for i, value := range items {
			if err := item(value); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return nil
	}
}

// pattern is a string that matches a regular expression as a whole.
func pattern(expression string) shape {
	compiled := regexp.MustCompile(`^(?s:` + expression + `)$`)
	return func(raw json.RawMessage) error {
		var text *string
		if err := json.Unmarshal(raw, &text); err != nil || text == nil {
			return fmt.Errorf("%.40s is no string", raw)
		}
		if !compiled.MatchString(*text) {
			return fmt.Errorf("%q does not match %s", *text, expression)
		}
		return nil
	}
}

func nullable(s shape) shape {
	return func(raw json.RawMessage) error {
		if string(raw) == "null" {
			return nil
		}
		return s(raw)
	}
}

// literal is a JSON value that matches as it is written: numbers and booleans.
func literal(expression string) shape {
	compiled := regexp.MustCompile(`^(?:` + expression + `)$`)
	return func(raw json.RawMessage) error {
		if !compiled.Match(raw) {
			return fmt.Errorf("%.40s does not match %s", raw, expression)
		}
		return nil
	}
}

func dateShape(raw json.RawMessage) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	_, err := time.Parse(time.DateOnly, text)
	return err
}

func shapes() map[string]shape {
	text, code, decimal := pattern(".*"), pattern("[A-Z]{3}"), nullable(pattern(`[0-9]+([.][0-9]{1,8})?`))
	instant := pattern(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]*[1-9])?Z`)
	count, boolean, uri := literal("0|[1-9][0-9]*"), literal("true|false"), pattern("|https?://.+")
	channel, kind := pattern("unspecified|branch|digital|cash|transfer"), pattern("commercial|reference")
	kinds := pattern("bank|association|exchange|official|cooperative")
	precision := pattern("datetime|day|unknown")
	rate := closed(member{"institutionId", pattern(".{1,80}")}, member{"currency", code}, member{"quoteCurrency", pattern("DOP")},
		member{"buy", decimal}, member{"sell", decimal}, member{"channel", channel}, member{"kind", kind},
		member{"effectiveDate", nullable(dateShape)}, member{"publishedAt", nullable(instant)},
		member{"upstreamSource", nullable(pattern(".{1,200}"))}, member{"id", text}, member{"institutionName", text},
		member{"institutionType", kinds}, member{"website", uri}, member{"sourceId", text}, member{"sourceName", text},
		member{"sourceUrl", uri}, member{"collectedAt", instant}, member{"lastCheckedAt", instant}, member{"expiresAt", instant},
		member{"priority", count}, member{"manual", boolean}, member{"stale", boolean}, member{"datePrecision", precision})
	meta := member{"meta", closed(member{"total", count}, member{"nextCursor", literal("null|0|[1-9][0-9]*")},
		member{"generatedAt", pattern(`[0-9-]{10}T[0-9:]{8}Z`)}, member{"quoteCurrency", pattern("DOP")})}
	institution := []member{
		{"id", text}, {"name", text}, {"type", kinds}, {"website", uri}, {"description", text}, {"contact", text},
		{"active", literal("true")},
	}
	item := closed(append(slices.Clone(institution), member{"currencies", arrayOf(code)}, member{"currentQuoteCount", count})...)
	detail := closed(append(slices.Clone(institution), member{"rates", arrayOf(rate)})...)
	currency := closed(member{"code", code}, member{"name", text}, member{"symbol", text}, member{"quoteCount", count},
		member{"currentQuoteCount", count})
	day := closed(member{"date", dateShape}, member{"institutionId", text}, member{"currency", code}, member{"channel", channel},
		member{"kind", kind}, member{"buy", decimal}, member{"sell", decimal}, member{"sourceId", text}, member{"datePrecision", precision})
	conversion := closed(member{"quote", rate}, member{"operation", pattern("buy|sell")},
		member{"foreignAmount", pattern(`[0-9]{1,12}([.][0-9]{1,2})?`)}, member{"currency", code},
		member{"amountDop", pattern(`[0-9]+[.][0-9]{2}`)}, member{"rate", pattern(`[0-9]+([.][0-9]{1,8})?`)},
		member{"feesIncluded", literal("false")}, member{"feeNotice", pattern(".+")})
	return map[string]shape{
		"currencies":   closed(member{"data", arrayOf(currency)}),
		"institutions": closed(member{"data", arrayOf(item)}, meta),
		"institution":  closed(member{"data", detail}),
		"rates":        closed(member{"data", arrayOf(rate)}, meta),
		"best":         closed(member{"data", arrayOf(rate)}, meta, member{"operation", pattern("buy|sell")}),
		"history":      closed(member{"data", arrayOf(day)}, meta),
		"convert":      closed(member{"data", arrayOf(conversion)}, meta),
	}
}

// errorShape is interface §7, with details exactly where they belong (E2).
func errorShape(details bool) shape {
	detail := closed(member{"path", arrayOf(literal(`"[^"]+"|[0-9]+`))}, member{"message", pattern(".+")})
	members := []member{
		{"code", pattern("[a-z_]+")}, {"message", pattern(".+")}, {"requestId", pattern(".+")},
	}
	if details {
		members = append(members, member{"details", arrayOf(detail)})
	}
	return closed(member{"error", closed(members...)})
}

// judge holds a body against the contract.
func judge(operation string, a answer) error {
	switch {
	case !utf8.Valid(a.body):
		return errors.New("the body is no UTF-8")
	case a.status == http.StatusOK:
		return shapes()[operation](a.body)
	case a.status == http.StatusNoContent || a.status == http.StatusNotModified:
		if len(a.body) > 0 || a.header.Get("Content-Type") != "" {
			return errors.New("a body, or a word about one, where none may be")
		}
		return nil
	}
	return errorShape(bytes.Contains(a.body, []byte(`"code":"invalid_parameters"`)))(a.body)
}

// TestK8_Shapes judges what the golden files hold.
func TestK8_Shapes(t *testing.T) {
	judged := 0
	for _, c := range goldenCases() {
		a := c.run(t)
		if c.method == http.MethodHead {
			continue
		}
		operation, _, _ := strings.Cut(c.name, "-")
		if err := judge(operation, a); err != nil {
			t.Errorf("%s: %v: %s", c.name, err, a.body)
		}
		judged++
	}
	if judged == 0 {
		t.Fatal("no body was judged")
	}
}

// TestK8_ShapesControl: the judge sees what is wrong.
func TestK8_ShapesControl(t *testing.T) {
	good := goldenCase{method: http.MethodGet, target: goldenTargets()["best"]}.run(t)
	if err := judge("best", good); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"buy":"`, `"buy":"+`}, {`"buy"`, `"bid"`}, {`"data":[{`, `"data":[{"x":1,`}, {`,"operation":"buy"`, ""},
		{`"priority":0`, `"priority":"0"`}, {`"total":`, `"total":0`}, {`"stale":false`, `"stale":null`},
		{`"currency":"USD",`, ``}, {`"effectiveDate":null`, `"effectiveDate":"2025-02-29"`}, {`14:00:00Z"`, `14:00:00+00:00"`},
	} {
		bad := answer{status: good.status, header: good.header, body: bytes.Replace(good.body, []byte(change[0]), []byte(change[1]), 1)}
		if bytes.Equal(bad.body, good.body) {
			t.Errorf("%s does not occur", change[0])
		}
		if judge("best", bad) == nil {
			t.Errorf("%s for %s passes", change[1], change[0])
		}
	}
}

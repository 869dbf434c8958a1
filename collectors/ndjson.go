package collectors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// parseJSON parses one line of NDJSON, which must be an object with strings and nulls.
func (r *Reader) parseJSON(line []byte, values *fields) *LineError {
	if problem := syntaxProblem(line); problem != nil {
		return problem
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if start, _ := decoder.Token(); start != json.Delim('{') {
		return &LineError{Found: describeToken(start), Want: "a JSON object"}
	}
	var seen [columnCount]bool
	for decoder.More() {
		key, _ := decoder.Token() // the line is valid JSON
		name, _ := key.(string)
		c, known := parseColumn(name)
		switch {
		case !known:
			return &LineError{Found: "the unknown key " + quoted(name), Want: "no keys but " + columns}
		case seen[c]:
			return &LineError{Column: name, Found: "the key twice", Want: "each key once"}
		}
		seen[c] = true
		value, _ := decoder.Token()
		text, isText := value.(string)
		if !isText && value != nil {
			return valueProblem(c, value)
		}
		values[c] = r.strings.intern([]byte(text))
	}
	return nil
}

// syntaxProblem returns an error unless the line is exactly one JSON value. json.Decoder would accept data after it.
func syntaxProblem(line []byte) *LineError {
	var whole json.RawMessage
	err := json.Unmarshal(line, &whole)
	if err == nil {
		return nil
	}
	found := "no JSON: " + err.Error()
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		found += fmt.Sprintf(" (position %d)", syntax.Offset)
	}
	return &LineError{Found: found, Want: "one JSON object"}
}

func valueProblem(c column, value json.Token) *LineError {
	want := "a string or null"
	if _, ok := value.(json.Number); ok && (c == columnBuy || c == columnSell) {
		want = `text in quotes, as "58.95", because numbers lose digits on their way`
	}
	return &LineError{Column: c.String(), Found: describeToken(value), Want: want}
}

func describeToken(token json.Token) string {
	switch value := token.(type) {
	case json.Delim:
		if value == '[' {
			return "an array"
		}
		return "an object"
	case json.Number:
		return "the number " + shortenNumber(value.String())
	case string:
		return "the string " + quoted(value)
	case bool:
		return fmt.Sprintf("%t", value)
	}
	return "null"
}

func shortenNumber(number string) string {
	if len(number) <= quotedBytesMax {
		return number
	}
	return fmt.Sprintf("%s and %d bytes more", number[:quotedBytesMax], len(number)-quotedBytesMax)
}

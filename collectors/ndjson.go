package collectors

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/tidwall/gjson"
)

// parseJSON parses one line of NDJSON: an object with strings and nulls. A repeated key is an error, because its value
// would be ambiguous.
func parseJSON(line []byte, values *fields) *LineError {
	var object map[string]json.RawMessage
	err := json.Unmarshal(line, &object)
	if wrongType := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrongType) {
		return &LineError{Found: "one " + wrongType.Value, Want: "a JSON object"}
	}
	if err != nil {
		return &LineError{Found: "no JSON: " + err.Error(), Want: "one JSON object"}
	}
	keys := 0
	gjson.ParseBytes(line).ForEach(func(gjson.Result, gjson.Result) bool { keys++; return true })
	if object != nil && keys != len(object) {
		return &LineError{Found: "a key twice", Want: "each key once"}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		c, known := parseColumn(name)
		if !known {
			return &LineError{Found: "the unknown key " + quoted(name), Want: "no keys but " + columns}
		}
		var text string // null leaves it empty
		if err := json.Unmarshal(object[name], &text); err != nil {
			return &LineError{Column: name, Found: quoted(string(object[name])), Want: `text in quotes, as "58.95", or null; numbers lose digits on their way`}
		}
		values[c] = shared(text)
	}
	return nil
}

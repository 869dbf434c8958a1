package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// CheckJSON refuses what cannot be read as one JSON text at all: files that operators write, such as a catalogue. What it lets
// pass can be walked with ReadObject. shorten says what to do with a file of more than bytesMax.
func CheckJSON(data []byte, bytesMax int, shorten string) error {
	switch {
	case len(data) > bytesMax:
		return fmt.Errorf("the file is longer than %d bytes; %s", bytesMax, shorten)
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return errors.New("the file begins with a byte order mark; save it as UTF-8 without one")
	case !utf8.Valid(data):
		return errors.New("the file is not UTF-8; save it as UTF-8")
	}
	var whole json.RawMessage
	err := json.Unmarshal(data, &whole)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		line := 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
		return fmt.Errorf("line %d: the file is not one JSON object: %w; mend it there", line, err)
	}
	return err
}

// ReadObject gives the keys of one JSON object with their values; raw is known to be valid JSON. encoding/json alone would let
// a doubled key, a key in other letters and a null pass. What is wrong is handed to report; nil fields are no object at all.
func ReadObject(raw []byte, report func(format string, args ...any)) map[string]json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		report("is no JSON object; write { ... }")
		return nil
	}
	fields := map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		key, isText := token.(string)
		var value json.RawMessage
		if err != nil || !isText || decoder.Decode(&value) != nil {
			report("cannot be read; check its commas and quotes")
			return fields
		}
		if _, twice := fields[key]; twice {
			report("the key %.40q stands twice; keep one", key)
		}
		fields[key] = value
	}
	return fields
}

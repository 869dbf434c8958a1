package dump

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/tasard/tasard/actors/internal/record"
	"github.com/tasard/tasard/engine"
)

// Record formats a record of the log as one line of JSON: the name of the event, and its non-empty fields. A cluster
// node's record can contain several events; it is formatted as the node's number and the list of events.
func Record(data []byte) (string, error) {
	b, events, err := new(record.Decoder).Events(data)
	if err != nil {
		return "", err
	}
	lines := make([]any, len(events))
	for i, event := range events {
		fields := describe(reflect.ValueOf(event).Elem()).(map[string]any)
		fields["event"] = nameOf(reflect.TypeOf(event).Elem().Name())
		lines[i] = fields
	}
	line := any(map[string]any{"event": "bundle", "node": b.Node, "records": lines})
	if b.Node == 0 && len(lines) == 1 { // a single event without a cluster
		line = lines[0]
	}
	text, err := json.Marshal(line)
	if err != nil {
		return "", fmt.Errorf("describe record: %w", err)
	}
	return string(text), nil
}

// nameOf returns the JSON name of a type or field, as in the HTTP API: sourceId, at, keyCreated.
func nameOf(name string) string {
	switch {
	case name == "Created":
		return "accountCreated"
	case strings.ToUpper(name) == name:
		return strings.ToLower(name)
	}
	name = strings.ToLower(name[:1]) + name[1:]
	if short, isID := strings.CutSuffix(name, "ID"); isID {
		return short + "Id"
	}
	return name
}

// digestShown is the number of bytes shown of a digest (of an API key, session token or login code): enough to
// recognize the digest, too few to find the secret.
const digestShown = 4

// describe returns a value for encoding/json. It omits empty fields of structs.
func describe(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case time.Time:
		return value.Format(time.RFC3339Nano)
	case fmt.Stringer: // masks an e-mail address
		return value.String()
	}
	switch v.Kind() {
	case reflect.Struct:
		fields := map[string]any{}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() || v.Field(i).IsZero() {
				continue
			}
			described := describe(v.Field(i))
			if nested, isStruct := described.(map[string]any); isStruct && (field.Anonymous || flat(v.Field(i).Interface())) {
				for name, value := range nested {
					fields[name] = value
				}
				continue
			}
			fields[nameOf(field.Name)] = described
		}
		return fields
	case reflect.Array: // only digests are arrays
		return fmt.Sprintf("%x…", v.Slice(0, digestShown).Bytes())
	case reflect.Slice:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = describe(v.Index(i))
		}
		return items
	}
	return v.Interface()
}

// flat reports whether a struct's fields are shown as fields of the surrounding struct.
func flat(value any) bool {
	_, key := value.(engine.QuoteKey)
	return key
}

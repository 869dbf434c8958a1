package source_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// writtenText is a definition in the form of its file; every character stays as it is: bodies are compared byte by byte.
func writtenText(t *testing.T, d *source.Definition) []byte {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(written(reflect.ValueOf(d), "")); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// written is a value under a key, nil where there is nothing to write.
func written(v reflect.Value, key string) any {
	switch value := v.Interface().(type) {
	case time.Duration:
		if value != 0 {
			return value.String()
		}
		return nil
	case engine.Date:
		if !value.IsZero() {
			return value.String()
		}
		return nil
	case engine.Decimal:
		return written(reflect.ValueOf(value.String()), key)
	}
	switch {
	case v.IsZero() && (v.Kind() == reflect.String || v.Kind() == reflect.Pointer || v.Kind() == reflect.Map || v.Kind() == reflect.Slice):
		return nil
	case key == "jumpPermille" && v.IsZero():
		return nil
	case key == "json":
		return json.RawMessage(v.String())
	}
	switch v.Kind() {
	case reflect.Pointer:
		return written(v.Elem(), key)
	case reflect.Slice:
		list := []any{}
		for i := range v.Len() {
			list = append(list, written(v.Index(i), ""))
		}
		return list
	case reflect.Map:
		object := map[string]any{}
		for _, name := range v.MapKeys() {
			object[name.String()] = written(v.MapIndex(name), "")
		}
		return object
	case reflect.Struct:
		object := map[string]any{}
		writeFields(object, v)
		return object
	}
	return v.Interface()
}

// writeFields writes the fields of a struct under their keys: ID is id, PlainHTTP plainHttp, CAFile caFile, DecimalsMax decimalsMax.
func writeFields(object map[string]any, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			writeFields(object, v.Field(i))
			continue
		}
		name := strings.NewReplacer("HTTP", "Http", "CA", "Ca", "ID", "Id", "URL", "Url", "JSON", "Json").Replace(field.Name)
		key := strings.ToLower(name[:1]) + name[1:]
		if value := written(v.Field(i), key); value != nil {
			object[key] = value
		}
	}
}

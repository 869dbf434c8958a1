// Package jsonfile reads JSON files that operators write, such as a catalogue or the definition of a source. It is
// stricter than encoding/json: repeated and unknown keys, keys in another case, null, and text after the object are
// errors.
//
//	err := jsonfile.Read("own.json", data, 1<<20, "split it", func(top *jsonfile.Object) {
//		name = top.Required("name", "", func(key string) string { return top.Text(key, 200) })
//		top.Each("pages", 16, func(page *jsonfile.Object) { ... })
//	})
//
// A visit takes each value from its object by its key, once. Keys that are not taken when the visit returns are
// reported as unknown. The error has all problems of a file, each with the file, the path in it and what to do. For a
// value with a problem the methods return the zero value or the default, so that reading continues.
package jsonfile

// Package jsonfile reads JSON files that operators write, such as a catalogue or the definition of a source. It is
// stricter than encoding/json: repeated and unknown keys, keys in another case, null, and text after the object are
// errors.
//
//	err := jsonfile.Read("own.json", data, 1<<20, "split it", func(top *jsonfile.Object) {
//		name = top.Required("name", "", func(key string) string { return top.Text(key, 200) })
//		top.Each("pages", 16, func(page *jsonfile.Object) { ... })
//	})
//
// Each value is taken from its object by its key, once; keys that are left when the visit of an object returns are
// unknown. All problems of a file are reported together, each with the file, the place in it and what to do. A value
// with a problem is the zero value or the default, so that reading goes on.
package jsonfile

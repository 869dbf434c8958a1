// Package jsonfile reads JSON files that operators write, such as a catalogue of institutions, or the definition of a
// source: how its pages are read. It is stricter than encoding/json. It reports as errors: repeated and unknown keys,
// keys in another case, null, and text after the object.
//
//	err := jsonfile.Read("own.json", data, 1<<20, "split it", func(top *jsonfile.Object) {
//		name = top.Required("name", "", func(key string) string { return top.Text(key, 200) })
//		top.Each("pages", 16, func(page *jsonfile.Object) { ... })
//	})
//
// A visit function takes each value from its object, by key and only once. Keys that it has not taken when it returns
// are reported as unknown. The error lists all problems of a file, each with the file, the path in the file and what to
// do. A method that finds a problem returns the zero value or the default, so that reading continues.
package jsonfile

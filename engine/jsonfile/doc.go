// Package jsonfile reads the JSON files that operators write, such as a catalogue or the definition of a source. It is strict where
// encoding/json is lenient: a doubled or unknown key, a key in other letters, null, and text behind the object are errors.
//
//	err := jsonfile.Read("own.json", data, 1<<20, "split it", func(top *jsonfile.Object) {
//		name = top.Required("name", "", func(key string) string { return top.Text(key, 200) })
//		top.Each("pages", 16, func(page *jsonfile.Object) { ... })
//	})
//
// Every value is taken from its object by its key, once; what is left when the visit of an object returns is an unknown key. Problems
// are collected, each with the file, the place in it and the way out, and are told together. A value with a problem is the zero value
// or the default, so that reading goes on.
package jsonfile

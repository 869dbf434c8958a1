package jsonfile_test

import (
	"fmt"

	"github.com/tasard/tasard/engine/jsonfile"
)

func ExampleRead() {
	text := `{"name": "Banco", "name": "Banco", "Pages": 1, "pages": [{"min": "2"}, null], "url": null}`
	err := jsonfile.Read("own.json", []byte(text), 1000, "split it", func(top *jsonfile.Object) {
		top.Required("id", "; write one", func(key string) string { return top.ID(key, 80) })
		top.Text("name", 200)
		top.URI("url", 200)
		top.Each("pages", 16, func(page *jsonfile.Object) { page.Number("min", 1, 1, 500) })
	})
	fmt.Println(err)
	// Output:
	// own.json: the file: has the key "name" twice; keep one
	// own.json: the file: id is missing or empty; write one
	// own.json: the file: url is not a text; write it in quotes
	// own.json: pages[0]: min is not a whole number from 1 to 500
	// own.json: pages[1]: is not a JSON object; write { ... }
	// own.json: the file: unknown key "Pages"; known are id, name, url, pages
}

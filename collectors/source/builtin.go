package source

import "embed"

//go:embed definitions/*.json definition.schema.json
var embedded embed.FS

// Schema returns the JSON Schema of definition files, for editors. It has every key that a definition file may have. It
// does not check what needs a parser, such as selectors and patterns, or several keys at once.
func Schema() []byte {
	text, err := embedded.ReadFile("definition.schema.json")
	if err != nil {
		panic("source: " + err.Error()) // impossible: it is embedded
	}
	return text
}

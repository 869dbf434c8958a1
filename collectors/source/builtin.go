package source

import "embed"

//go:embed definitions/*.json definition.schema.json
var embedded embed.FS

// Schema returns the JSON Schema of definition files, for editors. It lists every key. It does not check selectors,
// patterns and other texts that need a parser, and it does not check keys that depend on each other.
func Schema() []byte {
	text, err := embedded.ReadFile("definition.schema.json")
	if err != nil {
		panic("source: " + err.Error()) // impossible: it is embedded
	}
	return text
}

package source_test

import (
	"testing"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

func TestEmbeddedDefinitionsStandInTheCatalogue(t *testing.T) {
	set := source.DefaultSet()
	if err := set.Check(engine.DefaultCatalogue()); err != nil {
		t.Fatal(err)
	}
}

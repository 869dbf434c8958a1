package source_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
)

func TestAttributeOf(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"there", `<div id="tipoCambioHome" data-url=" /api/tipocambio?a=1&amp;b=2 "></div>`, "/api/tipocambio?a=1&b=2"},
		{"the first of two", `<p id="tipoCambioHome" data-url="/1"></p><p id="tipoCambioHome" data-url="/2"></p>`, "/1"},
		{"no element", `<div id="otro" data-url="/api"></div>`, ""},
		{"no attribute", `<div id="tipoCambioHome"></div>`, ""},
		{"an empty attribute", `<div id="tipoCambioHome" data-url="  "></div>`, ""},
		{"in a comment", `<!-- <div id="tipoCambioHome" data-url="/api"></div> -->`, ""},
		{"beyond the first MiB", strings.Repeat(" ", 1<<20) + `<div id="tipoCambioHome" data-url="/api"></div>`, ""},
		{"too many tags", strings.Repeat("<p>", 1<<18), ""},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := source.AttributeOf(&source.Document{URL: "https://example.do/", Body: []byte(tt.body)}, "#tipoCambioHome", "data-url")
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
			var f *source.Failure
			if err != nil && (!errors.As(err, &f) || f.Kind != source.Layout) {
				t.Errorf("got %v, want a failure of the kind layout", err)
			}
		})
	}
}

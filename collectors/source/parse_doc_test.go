package source

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// examplesOf are the definitions that stand in the documentation of the package.
func examplesOf(t *testing.T) []*Definition {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var examples []*Definition
	var example strings.Builder
	for line := range strings.Lines(string(text)) {
		code, isCode := strings.CutPrefix(line, "//\t")
		if !isCode {
			continue
		}
		example.WriteString(code)
		if code != "}\n" {
			continue
		}
		d, err := Read("doc.go", []byte(example.String()))
		if err != nil {
			t.Fatal(err)
		}
		examples = append(examples, d)
		example.Reset()
	}
	return examples
}

// Every example of the documentation can be read, and reads what it is an example of.
func TestDoc_Examples(t *testing.T) {
	says := map[string]parseCase{
		"banco-site": {
			document: pageOf(`<b class="compraUS">56.50</b><input id="venta" value="59.50"><p class="fecha">Actualizado: 17/09/2026 08:15</p>`),
			want:     []string{"banreservas USD unspecified [56.50] [59.50] 2026-09-17 2026-09-17T12:15:00Z"},
		},
		"banco-tabla": {
			document: pageOf(`<h1>Tasas de Cambio</h1><table><tr><th>Tipo</th><th>Compra</th><th>Venta</th></tr><tr><td>Dólar (US) Sucursales</td><td>56.60</td><td>60.30</td></tr>
				<tr><td>Euro (EU)*</td><td>64,20</td><td>71,10</td></tr><tr><td>Promedio</td><td>1</td><td>1</td></tr><tr><td>Euro (EU)</td><td>60.00</td><td>61.00</td><td>Tarjetas</td></tr></table>`),
			want: []string{"scotiabank USD branch [56.60] [60.30]", "scotiabank EUR unspecified [64.20] [71.10]", `note: a row is left out, because it says "Tarjeta"`},
		},
		"banco-json": {
			document: `{"success":true,"result":{"fecha":"2026-09-17","items":[{"compra":58.9582,"venta":"59.3318"}]}}`,
			want:     []string{"bcrd USD unspecified [58.9582] [59.3318] 2026-09-17"},
		},
		"banco-lista": {
			document: `{"data":[{"nombre":"dollarbuyrate","tasa":57.1},{"nombre":"dollarsellrate","tasa":59.8}]}`,
			want:     []string{"vimenca USD unspecified [57.1] [59.8]"},
		},
		"banco-texto": {
			document: pageOf("<main>Vendemos: RD$ 59.80 <br> Compramos: RD$57.10</main>"),
			want:     []string{"qik USD unspecified [57.10] [59.80]"},
		},
	}
	var methods []Method
	for _, d := range examplesOf(t) {
		extract := &d.Pages[0].Extract
		methods = append(methods, extract.Method)
		if extract.Method == XLSXRows {
			checkSheet(t, d, cellsOf("Año|Mes|Día|DÓLAR", "2026|Sep|17|58.95"), "bcrd USD unspecified [58.95] [58.95] 2026-09-17")
			continue
		}
		example, known := says[d.ID]
		if !known {
			t.Errorf("%s has no document here", d.ID)
		}
		t.Run(d.ID, func(t *testing.T) { checkCase(t, d, documentOf(example.document), example) })
	}
	if want := []Method{HTMLFields, HTMLRows, JSONFields, JSONRows, TextRegex, XLSXRows}; !slices.Equal(methods, want) {
		t.Errorf("the examples are of %q, want one of each: %q", methods, want)
	}
}

// Package source is what a source is, as data, and how its documents are read: bytes go in, observations or a typed Failure
// come out. It fetches nothing, starts nothing and reads no clock, so the same bytes always give the same answer.
//
// # A definition
//
// A source is one JSON file (definitions/ has those of the program, an operator's directory adds and replaces some: see
// Set.Extend). The file says whom the source speaks for, which pages to ask for, and how each is read. This one is whole:
//
//	{
//	  "id": "banco-site", "name": "Sitio web del Banco", "url": "https://www.banco.example/", "institution": "banreservas",
//	  "decimalsMax": 2, "note": "Class names since 2025; the page has a mobile twin of each element.",
//	  "pages": [{
//	    "requests": [{"url": "https://www.banco.example/tasas"}],
//	    "extract": {"method": "html-fields", "fields": [
//	      {"currency": "USD", "side": "buy", "at": ".compraUS"},
//	      {"currency": "USD", "side": "sell", "at": ".ventaUS"},
//	      {"currency": "USD", "side": "sell", "at": "#venta", "attribute": "value"}
//	    ], "date": {"at": ".fecha", "pattern": "Actualizado: (.*)", "form": "dd/mm/yyyy hh:mm"}}
//	  }]
//	}
//
// Every key has its meaning beside the field of the same name in definition.go. What most files need: decimal ("point" or
// "comma") where the source is known to write fractions so, decimalsMax as tight as the source allows, bounds where the band of
// a currency does not fit, and a note for whoever mends the file when the page has changed.
//
// # Six ways to read a page
//
// html-fields: an element for each side of each currency, as above. Fields with the same currency and side are tried in their
// order until one has a price: an older form of the page, say. Elements that stand there together, such as twins for narrow screens,
// belong into one selector with a comma: all prices that a selector or a pattern finds must agree.
//
// html-rows: rows of tables, or cards, told apart by a label. Columns are told by their heading, never by their position, and all
// rows stand below one row of headings: what stands below another one may only repeat it. A row whose text says unless is left out:
//
//	{
//	  "id": "banco-tabla", "name": "Tabla del Banco", "institution": "scotiabank",
//	  "pages": [{
//	    "requests": [{"url": "https://www.banco.example/tabla"}],
//	    "extract": {"method": "html-rows", "rows": {
//	      "at": "table tr", "label": {"column": "Tipo"}, "buy": {"column": "Compra"}, "sell": {"column": "Venta"},
//	      "labels": {
//	        "Dólar (US) Sucursales": {"currency": "USD", "channel": "branch"},
//	        "Euro (EU)": {"currency": "EUR"}
//	      },
//	      "ignore": ["Promedio"], "unless": "(?i)remesa|tarjeta", "min": 2
//	    }, "expect": [{"at": "h1", "pattern": "(?i)tasas de cambio"}]}
//	  }]
//	}
//
// json-fields: a path for each side of each currency, and what must be true before anything is believed:
//
//	{
//	  "id": "banco-json", "name": "Datos del Banco", "institution": "bcrd", "kind": "reference",
//	  "pages": [{
//	    "requests": [{"method": "POST", "url": "https://www.banco.example/api", "form": {}}],
//	    "extract": {"method": "json-fields", "fields": [
//	      {"currency": "USD", "side": "buy", "at": "result.items[0].compra"},
//	      {"currency": "USD", "side": "sell", "at": "result.items[0].venta"}
//	    ], "date": {"at": "result.fecha", "form": "iso"}, "expect": [{"path": "success", "value": "true"}]}
//	  }]
//	}
//
// In a path, items[0] is the first entry of a list and items[] its only one: with two nobody knows which is meant.
//
// json-rows: a list of objects, told apart by a code. Where each row has one value, value stands instead of buy and sell, and
// each label says its side. Labels that all pages share stand once, beside pages; a page's own labels, and what it ignores, win. A
// page names its institution where the source speaks for several:
//
//	{
//	  "id": "banco-lista", "name": "Lista de bancos", "upstreamSource": "Lista",
//	  "labels": {
//	    "dollarbuyrate": {"currency": "USD", "side": "buy"},
//	    "dollarsellrate": {"currency": "USD", "side": "sell"}
//	  },
//	  "pages": [{
//	    "institution": "vimenca", "requests": [{"url": "https://www.banco.example/lista"}],
//	    "extract": {"method": "json-rows", "rows": {"at": "data", "label": {"at": "nombre"}, "value": {"at": "tasa"}, "min": 2}}
//	  }]
//	}
//
// text-regex: a pattern (RE2) with the groups buy, sell and label, over the visible text of a selector or over the whole
// document as it is. Blanks of every kind are plain ones in what a pattern sees. A price is cut so that what stands around it
// can't be lost: a pattern that takes 58.90 out of 158.901 makes a wrong rate out of a changed page. A match whose text says unless
// is left out: where no label tells the currency, that is how a page that now shows the euro is noticed.
//
//	{
//	  "id": "banco-texto", "name": "Texto del Banco", "institution": "qik",
//	  "pages": [{
//	    "currency": "USD", "requests": [{"url": "https://www.banco.example/texto"}],
//	    "extract": {"method": "text-regex", "text": {
//	      "at": "main", "pattern": "Vendemos: (?P<sell>RD\\$ ?[^ ]+) Compramos: (?P<buy>RD\\$ ?[^ ]+)$",
//	      "unless": "(?i)euro|€"
//	    }}
//	  }]
//	}
//
// xlsx-rows: a sheet of a workbook (BIFF8 too) with a row for each day. at is the heading of a column; the row of headings is
// found by those of the date. The newest day is the answer, all days before it are its history:
//
//	{
//	  "id": "banco-hoja", "name": "Libro del Banco", "institution": "bcrd", "kind": "reference",
//	  "pages": [{
//	    "requests": [{"url": "https://www.banco.example/libro.xlsx"}],
//	    "extract": {"method": "xlsx-rows", "sheet": {"name": "Diaria", "year": "Año", "month": "Mes", "day": "Día"}, "fields": [
//	      {"currency": "USD", "side": "both", "at": "Dólar"}
//	    ]}
//	  }]
//	}
//
// # What is believed
//
// A price is read when it is certainly one (ReadPrice), a date in exactly its form, a label when it is equal (Normalise).
// Nothing is guessed, rescaled, swapped or derived. In particular:
//
//   - A side that can't be read goes on with its text, so that the engine holds it back where an operator sees it (I3); so does
//     a zero. When no side of a page can be read the page fails: value; when all are zero or say "N/A": empty.
//   - A side that is not there is empty, with a note. An unknown label is a note. When nothing is there, or fewer rows than min
//     are known: layout.
//   - A declared date that is missing or unreadable fails the page, because an undated page could be one of years ago.
//   - Another kind of document than the method reads, half a page, an error in JSON: wrong_content. The challenge of a bot wall,
//     when nothing stands where it should: blocked.
//   - Two rows that contradict each other both go on, and the engine refuses them; two elements of one field fail the page.
//   - A row of a sheet whose date does not exist, goes back, or repeats a day with other values is left out with a note; more
//     than one such row in a hundred: layout.
//   - Text is the text that people see: every element but bold and italic type sets its content apart by a blank, so that
//     the number of a footnote never becomes a digit of a price. What is struck out, stands in a template, or is hidden inside of the
//     place that is read, is not there. A place that is hidden itself is read: it may be a window that a click opens.
//   - A price that names a currency, other than the peso and its own, is none. So is the attribute of a table's cell that
//     contradicts the price in the cell, and a cell below the headings of both sides.
//
// # Rules for this package
//
// Limits of size are constants beside what they bound. No float type: numbers of JSON keep their digits, cells of workbooks
// come as text and lose only the noise behind the eighth digit (I2). Everything is safe for concurrent use: definitions and
// sets are immutable, and a document is read by whoever asks.
package source

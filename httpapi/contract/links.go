package contract

import (
	"net/http"
	"slices"
)

// links are the values of Link that lead from any answer to the contract (RFC 8631): the document for programs, the page for people.
func links() []string {
	return []string{
		"<" + pathJSON + `>; rel="service-desc"; type="` + typeJSON + `"`,
		"<" + pathDocs + `>; rel="service-doc"; type="text/html"`,
	}
}

// Announce puts links to the contract on an answer that does not have them yet.
func Announce(header http.Header) {
	for _, link := range links() {
		if !slices.Contains(header.Values("Link"), link) {
			header.Add("Link", link)
		}
	}
}

// catalogProfile says that a link set is an API catalog.
const catalogProfile = "https://www.rfc-editor.org/info/rfc9727"

// target is a link's end.
type target struct {
	Href  string `json:"href"`
	Type  string `json:"type,omitempty"`
	Title string `json:"title,omitempty"`
}

// catalogEntry is the links of one thing (RFC 9264, section 4.2).
type catalogEntry struct {
	Anchor      string   `json:"anchor"`
	Item        []target `json:"item,omitempty"`
	ServiceDesc []target `json:"service-desc,omitempty"`
	ServiceDoc  []target `json:"service-doc,omitempty"`
	ServiceMeta []target `json:"service-meta,omitempty"`
	Status      []target `json:"status,omitempty"`
}

// newCatalog is the API catalog (RFC 9727): which APIs there are, and what describes each.
func newCatalog(base string) []byte {
	return encode(struct {
		Linkset []catalogEntry `json:"linkset"`
	}{[]catalogEntry{
		{Anchor: base + pathCatalog, Item: []target{{Href: base + pathData, Title: "Exchange rates of the Dominican Republic, version 1"}}},
		{
			Anchor: base + pathData,
			ServiceDesc: []target{
				{Href: base + pathJSON, Type: typeJSON, Title: "OpenAPI 3.1"},
				{Href: base + pathYAML, Type: typeYAML, Title: "OpenAPI 3.1"},
			},
			ServiceDoc: []target{
				{Href: base + pathDocs, Type: "text/html"},
				{Href: base + pathModels, Type: "text/plain", Title: "For language models"},
			},
			ServiceMeta: []target{{Href: base + pathPostman, Type: typeJSON, Title: "Postman collection 2.1"}},
			Status:      []target{{Href: base + pathHealth, Type: typeJSON}},
		},
	}})
}

package contract

import (
	"net/http"
	"slices"
)

// links returns the Link headers to the API specification: the document for programs and the page for people (RFC
// 8631).
func links() []string {
	return []string{
		"<" + pathJSON + `>; rel="service-desc"; type="` + typeJSON + `"`,
		"<" + pathDocs + `>; rel="service-doc"; type="text/html"`,
	}
}

// AddLinks adds links to the API specification to the headers of a response, unless it has them.
func AddLinks(header http.Header) {
	for _, link := range links() {
		if !slices.Contains(header.Values("Link"), link) {
			header.Add("Link", link)
		}
	}
}

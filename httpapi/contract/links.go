package contract

import (
	"net/http"
	"slices"
)

// links are the Link headers to the contract (RFC 8631): the document for programs, the page for people.
func links() []string {
	return []string{
		"<" + pathJSON + `>; rel="service-desc"; type="` + typeJSON + `"`,
		"<" + pathDocs + `>; rel="service-doc"; type="text/html"`,
	}
}

// AddLinks adds links to the contract to the headers of an answer, unless it has them.
func AddLinks(header http.Header) {
	for _, link := range links() {
		if !slices.Contains(header.Values("Link"), link) {
			header.Add("Link", link)
		}
	}
}

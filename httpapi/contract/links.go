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

// AddLinks puts links to the contract on an answer that does not have them yet.
func AddLinks(header http.Header) {
	for _, link := range links() {
		if !slices.Contains(header.Values("Link"), link) {
			header.Add("Link", link)
		}
	}
}

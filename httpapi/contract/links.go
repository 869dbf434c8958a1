package contract

import (
	"net/http"
	"slices"
)

// links returns the Link headers of RFC 8631: to the API specification, and to its explanation.
func links() []string {
	return []string{
		"<" + pathJSON + `>; rel="service-desc"; type="` + typeJSON + `"`,
		"<" + pathDocs + `>; rel="service-doc"; type="text/html"`,
	}
}

// AddLinks adds links() to a response's headers, unless they are already there.
func AddLinks(header http.Header) {
	for _, link := range links() {
		if !slices.Contains(header.Values("Link"), link) {
			header.Add("Link", link)
		}
	}
}

package contract

import (
	"net/http"
	"slices"
)

// links returns the Link headers of RFC 8631 for the API specification and its documentation.
func links() []string {
	return []string{
		"<" + pathJSON + `>; rel="service-desc"; type="` + typeJSON + `"`,
		"<" + pathDocs + `>; rel="service-doc"; type="text/html"`,
	}
}

// AddLinks adds the Link headers for the API specification to a response, unless it has them.
func AddLinks(header http.Header) {
	for _, link := range links() {
		if !slices.Contains(header.Values("Link"), link) {
			header.Add("Link", link)
		}
	}
}

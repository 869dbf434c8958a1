package simulated

import (
	"net/http"
	"strings"
)

// bankServices returns the routes of JSON services, which scripts in the pages of banks call. A route is an address of
// the simulated site, with the function that renders the response.
func bankServices() []route {
	promerica := pageRoute("promerica", "www.promerica.com.do", "/", "promerica.html")
	promerica.apiPath = "/umbraco/Surface/TipoCambio/Consultar"
	promerica.cookies = []string{"__RequestVerificationToken=k58Yb60; path=/; HttpOnly; secure"}
	promericaRates := pageRoute("promerica", promerica.host, promerica.apiPath, "promerica.json")
	promericaRates.method, promericaRates.accepts = http.MethodPost, isPromericaRequest
	routes := []route{promerica, promericaRates}
	for _, r := range []struct{ method, institution, host, path, query, file string }{
		{"GET", "banreservas", "www.banreservas.com", "/_layouts/15/SharePointAPI/ObtenerTasas.ashx", "", "banreservas"},
		{"GET", "popular", "popularenlinea.com", "/_api/web/lists/getbytitle('Rates')/items", "$filter=ItemID eq '1'", "popular"},
		{"GET", "bhd", "backend.bhd.com.do", "/api/modal-cambio-rate", "populate=deep", "bhd"},
		{"GET", "bhd", "backend.bhd.com.do", "/api/t-4-5s/1", "populate=deep", "bhd_table"}, // edited by hand: texts such as "58.90 DOP"
		{"POST", "santa-cruz", "bsc.com.do", "/api/gql", "", "santa_cruz"},
		{"POST", "santa-cruz", "www.bsc.com.do", "/graphql", "", "santa_cruz_coins"},
		{"GET", "santa-cruz", "www.bsc.com.do", "/dynresources/wj/bsc/v1/divisas", "", "santa_cruz_legacy"},
		{"GET", "vimenca", "devops.bancovimenca.com", "/api-proxy.php", "", "vimenca"},
		{"GET", "lafise", "www.lafise.com", "/OpenBankingProxy/obl/v1/banks/BLRD/rates", "", "lafise"},
	} {
		service := pageRoute(r.institution, r.host, r.path, r.file+".json")
		service.method, service.query = r.method, r.query
		routes = append(routes, service)
	}
	return routes
}

// isPromericaRequest reports whether a request to the service of Banco Promerica is valid. The server sends an empty
// body for any other request.
func isPromericaRequest(r *http.Request) bool {
	return strings.ReplaceAll(r.Form.Get("json"), " ", "") == `{"operacion":2}` && r.Header.Get("X-Requested-With") == "XMLHttpRequest"
}

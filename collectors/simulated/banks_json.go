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
		{"GET", "cibao", "cibao.com.do", "/api/Coins/GetCoins", "", "cibao"},
	} {
		service := pageRoute(r.institution, r.host, r.path, r.file+".json")
		service.method, service.query = r.method, r.query
		routes = append(routes, service)
	}
	const popularAPI, popularAccessToken = "apipublico.bpd.com.do", "AAIgNWU4YjQ2simulated" //nolint:gosec // G101: of the simulated site only
	return append(routes,
		route{method: http.MethodPost, host: popularAPI, path: "/bpd/bpd-publico/bpd/Authentication/oauth2/token", render: func(v *pageData) document {
			if form := v.request.Form; form.Get("grant_type") != "client_credentials" || form.Get("client_secret") != "secret" {
				return unauthorized(`{"error":"invalid_client"}`)
			}
			return jsonDocument(`{"token_type":"Bearer","access_token":%q,"scope":"scope_1","expires_in":3600}`, popularAccessToken)
		}},
		withToken(popularAccessToken, pageRoute("popular", popularAPI, "/bpd/bpd-publico/consultatasa/consultaTasa", "popular_api.json")))
}

// withToken returns a route that responds with status 401 to a request without a token.
func withToken(token string, r route) route {
	render := r.render
	r.render = func(v *pageData) document {
		if v.request.Header.Get("Authorization") != "Bearer "+token {
			return unauthorized(`{"httpCode":"401","httpMessage":"Unauthorized","moreInformation":"Invalid client id or secret."}`)
		}
		return render(v)
	}
	return r
}

func unauthorized(text string) document {
	return document{contentType: contentJSON, body: []byte(text), status: http.StatusUnauthorized}
}

// isPromericaRequest reports whether a request to the service of Banco Promerica is valid. The server sends an empty
// body for any other request.
func isPromericaRequest(r *http.Request) bool {
	return strings.ReplaceAll(r.Form.Get("json"), " ", "") == `{"operacion":2}` && r.Header.Get("X-Requested-With") == "XMLHttpRequest"
}

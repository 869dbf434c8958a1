package simulated

import "net/http"

// bankPages returns the routes of the web pages of banks, savings associations and exchange houses. A route is an
// address of the simulated site, with the function that renders the page.
func bankPages() []route {
	return []route{
		pageRoute("banreservas", "www.banreservas.com", "/", "banreservas.html"),
		pageRoute("popular", "popularenlinea.com", "/personas/Paginas/Home.aspx", "popular.html"),
		pageRoute("scotiabank", "do.scotiabank.com", "/banca-personal/tarifas/tasas-de-cambio.html", "scotiabank.html"),
		pageRoute("lopez-de-haro", "www.blh.com.do", "/productos/compra-y-venta-de-divisas/", "blh.html"), //nolint:misspell // Spanish
		pageRoute("bdi", "www.bdi.com.do", "/", "bdi.html"),
		pageRoute("caribe", "www.bancocaribe.com.do", "/", "caribe.html"),
		pageRoute("ademi", "bancoademi.com.do", "/", "ademi.html"),
		pageRoute("banesco", "www.banesco.com.do", "/", "banesco.html"),
		pageRoute("activo", "www.bancoactivo.com.do", "/tasas-tarifas.html", "activo.html"),
		pageRoute("qik", "qik.do", "/tasadeldia/", "qik.html"),
		pageRoute("jmmb", "do-bank.jmmb.com", "/es/tasas-de-referencia", "jmmb.html"),
		pageRoute("union", "www.bancounion.com.do", "/servicios/cambio-de-divisas/", "union.html"),
		pageRoute("bonanza", "www.bonanzabanco.com.do", "/", "bonanza.html"),
		pageRoute("apap", "www.apap.com.do", "/", "apap.html"),
		pageRoute("la-nacional", "asociacionlanacional.com.do", "/", "alnap.html"),
		pageRoute("peravia", "asociacionperavia.com.do", "/", "peravia.html"),
		pageRoute("caribe-express", "caribeexpress.com.do", "/", "caribe_express.html"),
		pageRoute("agente-la-nacional", "acn.com.do", "/", "acn.html"),
		pageRoute("quezada", "quezada.do", "/", "quezada.html"),
		pageRoute("quezada", "agentedecambioquezada.com", "/divisas.html", "quezada_divisas.html"),
		plainTextRoute("dollarcompra", "USD", true), plainTextRoute("dollarventa", "USD", false),
		plainTextRoute("eurocompra", "EUR", true), plainTextRoute("euroventa", "EUR", false),
	}
}

// plainTextRoute returns the route of a text file of Banco Empire. Such a file contains only a price.
func plainTextRoute(file, currency string, buy bool) route {
	return route{
		method: http.MethodGet, host: "www.bancoempire.com.do", path: "/txt/" + file + ".txt", institution: "empire",
		render: func(v *pageData) document {
			side := v.Quote("empire", currency).Sell
			if buy {
				side = v.Quote("empire", currency).Buy
			}
			return document{contentType: "text/plain", body: []byte(side + "\r\n")}
		},
	}
}

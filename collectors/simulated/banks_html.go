package simulated

import "net/http"

// bankPages returns the routes of the web pages of banks, savings associations and exchange houses. A route is an
// address of the simulated site, with the function that renders the page.
func bankPages() []route {
	return []route{
		htmlRoute("banreservas", "www.banreservas.com", "/", "banreservas.html"),
		htmlRoute("popular", "popularenlinea.com", "/personas/Paginas/Home.aspx", "popular.html"),
		htmlRoute("scotiabank", "do.scotiabank.com", "/banca-personal/tarifas/tasas-de-cambio.html", "scotiabank.html"),
		htmlRoute("lopez-de-haro", "www.blh.com.do", "/productos/compra-y-venta-de-divisas/", "blh.html"), //nolint:misspell // Spanish
		htmlRoute("bdi", "www.bdi.com.do", "/", "bdi.html"),
		htmlRoute("caribe", "www.bancocaribe.com.do", "/", "caribe.html"),
		htmlRoute("ademi", "bancoademi.com.do", "/", "ademi.html"),
		htmlRoute("banesco", "www.banesco.com.do", "/", "banesco.html"),
		htmlRoute("activo", "www.bancoactivo.com.do", "/tasas-tarifas.html", "activo.html"),
		htmlRoute("qik", "qik.do", "/tasadeldia/", "qik.html"),
		htmlRoute("jmmb", "do-bank.jmmb.com", "/es/tasas-de-referencia", "jmmb.html"),
		htmlRoute("union", "www.bancounion.com.do", "/servicios/cambio-de-divisas/", "union.html"),
		htmlRoute("bonanza", "www.bonanzabanco.com.do", "/", "bonanza.html"),
		htmlRoute("apap", "www.apap.com.do", "/", "apap.html"),
		htmlRoute("la-nacional", "asociacionlanacional.com.do", "/", "alnap.html"),
		htmlRoute("peravia", "asociacionperavia.com.do", "/", "peravia.html"),
		htmlRoute("caribe-express", "caribeexpress.com.do", "/", "caribe_express.html"),
		htmlRoute("agente-la-nacional", "acn.com.do", "/", "acn.html"),
		htmlRoute("quezada", "quezada.do", "/", "quezada.html"),
		htmlRoute("quezada", "agentedecambioquezada.com", "/divisas.html", "quezada_divisas.html"),
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

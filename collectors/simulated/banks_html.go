package simulated

import "net/http"

// bankPages are the pages of banks, associations and houses that people look at.
func bankPages() []route {
	return []route{
		page("banreservas", "www.banreservas.com", "/", "banreservas.html"),
		page("banreservas", "www.banreservas.com", "/calculadoras/", "banreservas_calculadoras.html"),
		page("popular", "popularenlinea.com", "/personas/Paginas/Home.aspx", "popular.html"),
		page("scotiabank", "do.scotiabank.com", "/banca-personal/tarifas/tasas-de-cambio.html", "scotiabank.html"),
		page("lopez-de-haro", "www.blh.com.do", "/productos/compra-y-venta-de-divisas/", "blh.html"), //nolint:misspell // Spanish
		page("bdi", "www.bdi.com.do", "/", "bdi.html"),
		page("caribe", "www.bancocaribe.com.do", "/", "caribe.html"),
		page("ademi", "bancoademi.com.do", "/", "ademi.html"),
		page("banesco", "www.banesco.com.do", "/", "banesco.html"),
		page("activo", "www.bancoactivo.com.do", "/tasas-tarifas.html", "activo.html"),
		page("qik", "qik.do", "/tasadeldia/", "qik.html"),
		page("jmmb", "do-bank.jmmb.com", "/es/tasas-de-referencia", "jmmb.html"),
		page("union", "www.bancounion.com.do", "/servicios/cambio-de-divisas/", "union.html"),
		page("bonanza", "www.bonanzabanco.com.do", "/", "bonanza.html"),
		page("apap", "www.apap.com.do", "/", "apap.html"),
		page("la-nacional", "www.alnap.com.do", "/", "alnap.html"),
		page("la-nacional", "asociacionlanacional.com.do", "/", "alnap.html"),
		page("peravia", "asociacionperavia.com.do", "/", "peravia.html"),
		page("caribe-express", "caribeexpress.com.do", "/", "caribe_express.html"),
		page("agente-la-nacional", "acn.com.do", "/", "acn.html"),
		page("quezada", "quezada.do", "/", "quezada.html"),
		page("quezada", "agentedecambioquezada.com", "/divisas.html", "quezada_divisas.html"),
		page("quezada", "www.agentedecambioquezada.com", "/divisas.html", "quezada_divisas.html"),
		bare("dollarcompra", "USD", true), bare("dollarventa", "USD", false),
		bare("eurocompra", "EUR", true), bare("euroventa", "EUR", false),
	}
}

// bare is one of the text files of Banco Empire: a number and nothing else.
func bare(file, currency string, buys bool) route {
	return route{
		method: http.MethodGet, host: "www.bancoempire.com.do", path: "/txt/" + file + ".txt", institution: "empire",
		render: func(v *view) document {
			side := v.Quote("empire", currency).Sell
			if buys {
				side = v.Quote("empire", currency).Buy
			}
			return document{contentType: "text/plain", body: []byte(side + "\r\n")}
		},
	}
}

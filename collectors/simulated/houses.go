package simulated

// associationPages are those of savings and loan associations.
func associationPages() []route {
	return []route{
		page("apap", "www.apap.com.do", "/", "apap.html"),
		page("la-nacional", "www.alnap.com.do", "/", "alnap.html"),
		page("la-nacional", "asociacionlanacional.com.do", "/", "alnap.html"),
		page("peravia", "asociacionperavia.com.do", "/", "peravia.html"),
	}
}

// housePages are those of exchange houses.
func housePages() []route {
	return []route{
		page("caribe-express", "caribeexpress.com.do", "/", "caribe_express.html"),
		page("agente-la-nacional", "acn.com.do", "/", "acn.html"),
		page("quezada", "quezada.do", "/", "quezada.html"),
		page("quezada", "agentedecambioquezada.com", "/divisas.html", "quezada_divisas.html"),
		page("quezada", "www.agentedecambioquezada.com", "/divisas.html", "quezada_divisas.html"),
	}
}

// houseLabel is what houses call a currency.
func houseLabel(currency string) string {
	return map[string]string{
		"USD": "DOLARES AMERICANOS", "EUR": "EUROS", "GBP": "LIBRAS ESTERLINAS", "CHF": "FRANCOS SUIZOS", "CAD": "DOLARES CANADIENSES",
	}[currency]
}

// quezadaClass is the class of a currency's line for cash: dollar, euro, Canadian dollar, franc, pound.
func quezadaClass(currency string) string {
	return map[string]string{"USD": "da-ef", "EUR": "e-ef", "CAD": "dc-ef", "CHF": "fs-ef", "GBP": "le-ef"}[currency]
}

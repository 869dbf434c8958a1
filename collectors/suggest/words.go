package suggest

import (
	"regexp"
	"strings"

	"github.com/tasard/tasard/collectors/values"
)

// topic is what a word is about.
type topic string

const (
	aboutSide     topic = "side"
	aboutCurrency topic = "currency"
	aboutChannel  topic = "channel"
	aboutNoise    topic = "noise" // a number beside it is not a rate of today: interest, remittances, yesterday
)

// word is a word of a document that means something for rates.
type word struct {
	topic   topic
	meaning string // buy or sell, the code of a currency, a channel; "" = there is no word
	text    string // as in the document
}

// pesos is the meaning of the words for the peso. They say nothing about which currency is sold.
const pesos = "DOP"

// dictionary has the meanings of normalised words.
var dictionary = makeDictionary(map[topic]map[string]string{
	aboutSide: {
		"buy":  "compra compramos comprar compras comprador buy buys buying purchase purchasing bid",
		"sell": "venta ventas vendemos vende vender vendedor sell sells selling sale sales ask",
	},
	aboutCurrency: {
		"USD": "usd us us$ dolar dolares dollar dollars dol", "EUR": "eur euro euros € eu eu$ eur$",
		"GBP": "gbp libra libras £ pound pounds sterling", "CHF": "chf franco francos swissfranc",
		"CAD": "cad cad$ ca$ cdollar", "DKK": "dkk", "JPY": "jpy yen yenes", "BRL": "brl reales", "AUD": "aud", "CNY": "cny yuan",
		pesos: "dop rd$ peso pesos",
	},
	aboutChannel: {
		"branch": "sucursal sucursales oficina oficinas branch ventanilla", "digital": "digital digitales app internet movil online linea",
		"cash": "efectivo cash", "transfer": "transferencia transferencias transfer",
	},
	aboutNoise: {
		"noise": "remesa remesas envio envios tarjeta tarjetas cheque cheques ayer anterior promedio average referencia referencial prestamo " +
			"prestamos certificado certificados plazo plazos cuota hipotecario hipotecaria loan loans ahorro ahorros interanual accumulated " +
			"acumulado variacion spread duration preferencial central comision mortgage credito microcredito % yesterday previous",
	},
})

func makeDictionary(topics map[topic]map[string]string) map[string]word {
	all := map[string]word{}
	for about, meanings := range topics {
		for meaning, words := range meanings {
			for text := range strings.FieldsSeq(words) {
				all[text] = word{topic: about, meaning: meaning}
			}
		}
	}
	return all
}

// otherDollars are beginnings of adjectives that make a dollar, a franc or a crown that of another country.
var otherDollars = map[string]string{
	"canad": "CAD", "cad": "CAD", "austral": "AUD", "aud": "AUD", "suiz": "CHF", "danes": "DKK", "norueg": "NOK", "suec": "SEK", "hong": "HKD", "escoc": "GBX",
}

// codesOfNumbers are the numbers of currencies in ISO 4217, which some services use.
var codesOfNumbers = map[string]string{"840": "USD", "978": "EUR", "826": "GBP", "756": "CHF", "124": "CAD"}

var (
	wordPattern  = regexp.MustCompile(`(?i)(?:RD|US|EU|CAD?|EUR)\$|[€£%]|\pL+`)
	camelPattern = regexp.MustCompile(`(\p{Ll})(\p{Lu})`)
)

// wordsMax is the maximum number of words of one text that are looked up.
const wordsMax = 200

// wordsOf returns the words of a text that mean something. Names such as DollarBuyRate and us_buy are split.
func wordsOf(text string) (found []word) {
	text = camelPattern.ReplaceAllString(strings.NewReplacer("_", " ", "-", " ").Replace(text), "$1 $2")
	for _, original := range wordPattern.FindAllString(text, wordsMax) {
		plain := values.NormaliseLabel(original)
		if plain == "" {
			plain = original
		}
		known, ok := dictionary[plain]
		last := len(found) - 1
		switch other := otherDollar(plain); {
		case other != "" && last >= 0 && found[last].topic == aboutCurrency: // "dólar canadiense", "Dólar (CAD)"
			found[last].meaning, found[last].text = other, found[last].text+" "+original
		case ok && last >= 0 && known.topic == aboutCurrency && found[last].topic == aboutCurrency && found[last].meaning == known.meaning:
		case ok:
			known.text = original
			found = append(found, known)
		default:
			found = append(found, wordsWithin(plain, original)...)
		}
	}
	return found
}

func otherDollar(plain string) string {
	if plain == "ca" || plain == "can" {
		return "CAD"
	}
	for stem, code := range otherDollars {
		if strings.HasPrefix(plain, stem) {
			return code
		}
	}
	return ""
}

// Names without separators, such as dollarbuyrate and compraus: the shortest that are split, and the shortest word in
// them that counts.
const (
	joinedMin = 7
	joinedMax = 60
	innerMin  = 4
)

// wordsWithin finds long words of sides and currencies in a name without separators.
func wordsWithin(plain, original string) (found []word) {
	for rest := plain; len(plain) >= joinedMin && len(plain) <= joinedMax && rest != ""; {
		best := ""
		for text, w := range dictionary {
			isLong := len(text) >= innerMin && !strings.HasSuffix(text, "s") || text == "buy"
			if isLong && len(text) > len(best) && (w.topic == aboutSide || w.topic == aboutCurrency) && strings.HasPrefix(rest, text) {
				best = text
			}
		}
		if best == "" {
			rest = rest[1:]
			continue
		}
		w := dictionary[best]
		w.text = original
		found, rest = append(found, w), rest[len(best):]
	}
	return found
}

// only returns the word of a topic if all words of the topic mean the same. several is true if they do not. The peso
// does not count.
func only(words []word, about topic) (found word, several bool) {
	for _, w := range words {
		switch {
		case w.topic != about || w.meaning == pesos:
		case found.meaning == "":
			found = w
		case w.meaning != found.meaning:
			return word{}, true
		}
	}
	return found, false
}

func has(words []word, about topic) bool {
	for _, w := range words {
		if w.topic == about && w.meaning != pesos {
			return true
		}
	}
	return false
}

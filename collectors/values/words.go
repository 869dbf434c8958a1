package values

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Topic is the subject of a word.
type Topic string

// The topics.
const (
	AboutSide     Topic = "side"
	AboutCurrency Topic = "currency"
	AboutChannel  Topic = "channel"
	AboutOther    Topic = "other"  // the price beside it is another rate: of remittances, of yesterday, of interest
	aboutNation   Topic = "nation" // nation of a currency; only in labels
	aboutFiller   Topic = "filler"
)

// Word is a word with a meaning for a price.
type Word struct {
	Topic   Topic
	Meaning string // buy or sell, a currency code, a channel; "" = there is no word
	Text    string // as in the document
}

// Pesos is the meaning of words for the peso. They do not tell which currency is sold.
const Pesos = "DOP"

// The meanings of AboutOther.
const (
	otherRate = "rate"   // an exchange rate, but not today's general one
	noRate    = "number" // interest, a fee, an amount
)

// dictionary maps normalised words to meanings.
var dictionary = makeDictionary(map[Topic]map[string]string{
	AboutSide: {
		"buy":  "compra compramos comprar compras comprador buy buys buying purchase purchasing bid",
		"sell": "venta ventas vendemos vende vender vendedor sell sells selling sale sales ask",
	},
	AboutCurrency: {
		"USD": "usd us us$ u$s dolar dolares dollar dollars dol",
		"EUR": "eur euro euros € eu eu$ eur$", "GBP": "gbp libra libras £ pound pounds sterling",
		"CHF": "chf franco francos swissfranc", "CAD": "cad cad$ ca$ cdollar",
		"DKK": "dkk", "JPY": "jpy yen yenes", "BRL": "brl", "AUD": "aud", "CNY": "cny yuan", Pesos: "dop rd$ peso pesos",
	},
	AboutChannel: {
		"branch": "sucursal sucursales oficina oficinas branch ventanilla", "digital": "digital digitales app internet movil online linea",
		"cash": "efectivo cash", "transfer": "transferencia transferencias transfer",
	},
	AboutOther: {
		otherRate: "remesa remesas envio envios tarjeta tarjetas cheque cheques ayer anterior yesterday previous promedio average referencia referencial",
		noRate: "prestamo prestamos certificado certificados plazo plazos cuota hipotecario hipotecaria loan loans ahorro ahorros interanual accumulated " +
			"acumulado variacion spread duration preferencial central comision mortgage credito microcredito %",
	},
	aboutNation: {"USD": "americano americanos estadounidense estadounidenses", "CHF": "suizo suizos", "CAD": "ca canadiense canadienses"},
	aboutFiller: {"": "$ de del en el la los las moneda divisa estados unidos ee uu eeuu canal canales esterlina esterlinas"},
})

func makeDictionary(topics map[Topic]map[string]string) map[string]Word {
	all := map[string]Word{}
	for about, meanings := range topics {
		for meaning, words := range meanings {
			for text := range strings.FieldsSeq(words) {
				all[text] = Word{Topic: about, Meaning: meaning, Text: text}
			}
		}
	}
	return all
}

// LabelCurrencies are the currencies that LabelWords knows.
func LabelCurrencies() []string { return []string{"USD", "EUR", "GBP", "CHF", "CAD"} }

// LabelWords reads a normalised label, such as "dolares (us$) canales digitales": a currency, perhaps a channel and
// perhaps a side. It returns false unless the label names exactly one currency and all words are in the dictionary. So
// it rejects "Remesas en dólares" and "Dólar (ayer)".
func LabelWords(label string) (currency, channel, side string, ok bool) {
	anyDollar := false
	targets := map[Topic]*string{AboutCurrency: &currency, aboutNation: &currency, AboutChannel: &channel, AboutSide: &side}
	between := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("$€£", r)
	}
	for text := range strings.FieldsFuncSeq(NormaliseLabel(label), between) {
		word, known := dictionary[text]
		target := targets[word.Topic]
		switch {
		case word.Topic == aboutFiller:
		case !known || target == nil || word.Meaning == Pesos:
			return "", "", "", false
		case isDollar(text):
			anyDollar = true
		case *target != "" && *target != word.Meaning:
			return "", "", "", false
		default:
			*target = word.Meaning
		}
	}
	switch {
	case anyDollar && currency == "":
		currency = "USD"
	case anyDollar && currency != "USD" && currency != "CAD":
		return "", "", "", false
	}
	for _, known := range LabelCurrencies() {
		ok = ok || currency == known
	}
	return currency, channel, side, ok
}

// isDollar reports whether a word means the dollar: the United States' unless another word names the country.
func isDollar(text string) bool { return strings.HasPrefix(text, "dol") }

// OtherRate returns a word that shows that a text is about another rate, or "". Such a word names another currency, the
// side that is not read (unread), remittances, cards, cheques, averages or another day.
func OtherRate(text, currency, unread string) string {
	for _, w := range Words(text) {
		isOther := w.Topic == AboutCurrency && w.Meaning != Pesos && w.Meaning != currency
		if isOther || w.Meaning == otherRate || w.Topic == AboutSide && w.Meaning == unread {
			return w.Text
		}
	}
	return ""
}

// otherDollars maps beginnings of adjectives for countries, as in "dólar canadiense", to the currencies.
var otherDollars = map[string]string{
	"canad": "CAD", "cad": "CAD", "austral": "AUD", "aud": "AUD", "suiz": "CHF", "danes": "DKK", "norueg": "NOK", "suec": "SEK", "hong": "HKD", "escoc": "GBX",
}

var (
	wordPattern  = regexp.MustCompile(`(?i)(?:RD|US|EU|CAD?|EUR)\$|[€£%]|\pL+`)
	separators   = strings.NewReplacer("_", " ", "-", " ")
	camelPattern = regexp.MustCompile(`(\p{Ll})(\p{Lu})`)
)

// wordsMax is the maximum number of words of a text that are looked up.
const wordsMax = 200

// Words returns the meaningful words of a text. It splits names such as DollarBuyRate and us_buy.
func Words(text string) (found []Word) {
	text = camelPattern.ReplaceAllString(separators.Replace(text), "$1 $2")
	for _, original := range wordPattern.FindAllString(text, wordsMax) {
		plain := NormaliseLabel(original)
		if plain == "" {
			plain = original
		}
		known, ok := dictionary[plain]
		last := len(found) - 1
		switch other := otherDollar(plain); {
		case other != "" && last >= 0 && found[last].Topic == AboutCurrency: // "dólar canadiense", "Dólar (CAD)"
			found[last].Meaning, found[last].Text = other, found[last].Text+" "+original
		case known.Topic == aboutFiller || known.Topic == aboutNation:
		case ok && last >= 0 && known.Topic == AboutCurrency && found[last].Topic == AboutCurrency && found[last].Meaning == known.Meaning:
		case ok:
			known.Text = original
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

// Limits for splitting names without separators, such as dollarbuyrate and compraus: the minimum length of such a name,
// and of a word in it.
const (
	joinedMin = 7
	joinedMax = 60
	innerMin  = 4

	longestWord = 10 // purchasing
)

// wordsWithin finds long words for sides and currencies in a name without separators.
func wordsWithin(plain, original string) (found []Word) {
	for rest := plain; len(plain) >= joinedMin && len(plain) <= joinedMax && rest != ""; {
		best := ""
		for length := min(len(rest), longestWord); length > 2 && best == ""; length-- {
			text := rest[:length]
			w := dictionary[text]
			isLong := length >= innerMin && !strings.HasSuffix(text, "s") || text == "buy"
			if isLong && (w.Topic == AboutSide || w.Topic == AboutCurrency) {
				best = text
			}
		}
		if best == "" {
			rest = rest[1:]
			continue
		}
		w := dictionary[best]
		w.Text = original
		found, rest = append(found, w), rest[len(best):]
	}
	return found
}

// footnoteMarks are removed from both ends of a label by NormaliseLabel.
const footnoteMarks = " :*.¹²³†‡"

// NormaliseLabel normalises a label, such as a bank's name in a row or a column heading: lower case, single spaces, no
// accents or zero-width characters, no footnoteMarks at the ends. Labels are equal if their normalised texts are equal.
// A common part is not enough: the exchange house "Agente de Cambio La Nacional" is not the association "La Nacional".
func NormaliseLabel(text string) string {
	var normal, letters strings.Builder
	flush := func() {
		normal.WriteString(withoutAccents(letters.String()))
		letters.Reset()
	}
	for _, r := range CollapseSpaces(text) {
		if unicode.IsLetter(r) || unicode.IsMark(r) {
			letters.WriteRune(r)
			continue
		}
		flush()
		normal.WriteRune(r)
	}
	flush()
	return CollapseSpaces(strings.Trim(normal.String(), footnoteMarks))
}

// withoutAccents removes accents and splits ligatures. text must not contain digits or symbols, because the Unicode
// normalisation NFKC would turn a superscript into a digit.
func withoutAccents(text string) string {
	var plain strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(norm.NFKC.String(text))) {
		if !unicode.IsMark(r) {
			plain.WriteRune(r)
		}
	}
	return norm.NFC.String(plain.String())
}

// CollapseSpaces replaces each run of white space by a single space. It removes white space at the ends, and all
// Unicode format characters (Cf).
func CollapseSpaces(text string) string {
	var b strings.Builder
	blank := false
	for _, r := range text {
		switch {
		case IsSpace(r):
			blank = b.Len() > 0
		case unicode.Is(unicode.Cf, r):
		default:
			if blank {
				b.WriteByte(' ')
				blank = false
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// NormaliseSpaces replaces all white space except newlines by spaces, because \s in a pattern matches only ASCII.
func NormaliseSpaces(text string) string {
	return strings.Map(func(c rune) rune {
		if IsSpace(c) && c != '\n' {
			return ' '
		}
		return c
	}, text)
}

// IsSpace reports whether a character separates words. It includes control characters and zero-width spaces, which
// separate words on some pages but are not in unicode.IsSpace.
func IsSpace(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Zs, r) || unicode.IsControl(r) || r == '\u200b' || r == '\ufeff'
}

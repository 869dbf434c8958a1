package source

import (
	"cmp"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/tasard/tasard/collectors/values"
	"github.com/tasard/tasard/engine"
)

// Labels says which quote the label of a row stands for, by normalised label. In a definition file, "currencies"
// instead of an object means that the labels are read with a dictionary of currency words.
type Labels map[string]Target

// byWords is the key of Labels that are read with the dictionary. No file has it: control characters are refused.
const byWords = "\x00currencies"

// UnmarshalJSON reads an object of labels, or "currencies".
func (l *Labels) UnmarshalJSON(data []byte) error {
	if string(data) == `"currencies"` {
		*l = Labels{byWords: {}}
		return nil
	}
	return json.Unmarshal(data, (*map[string]Target)(l))
}

// find returns the quote that a normalised label stands for.
func (l Labels) find(label string) (Target, bool) {
	target, known := l[label]
	if _, words := l[byWords]; !known && words {
		target, known = targetOfWords(label)
	}
	return target, known
}

// The dictionary. All words of a label must be in it, so that "Remesas en dólares" or "Dólar (ayer)" stand for nothing.
const (
	fillerWords   = " $ de del en el la los las moneda divisa estados unidos ee uu eeuu canal canales esterlina esterlinas "
	dollarWords   = " dolar dolares dollar dollars "
	branchWords   = " sucursal sucursales oficina oficinas "
	digitalWords  = " digital digitales internet "
	cashWords     = " efectivo "
	transferWords = " transferencia transferencias "
)

func wordsOfCurrency() map[string]string {
	return map[string]string{
		"USD": " usd us us$ u$s americano americanos estadounidense estadounidenses ",
		"EUR": " eur eur$ eu eu$ euro euros € ",
		"GBP": " gbp libra libras £ ",
		"CHF": " chf franco francos suizo suizos ",
		"CAD": " cad cad$ ca ca$ canadiense canadienses ",
	}
}

// targetOfWords reads a normalised label, such as "dolares (us$) canales digitales". It returns false if the label does
// not name exactly one currency, or has another word.
func targetOfWords(label string) (Target, bool) {
	var target Target
	isDollar := false
	between := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("$€£", r)
	}
	for word := range strings.FieldsFuncSeq(values.NormaliseLabel(label), between) {
		currency, channel := "", engine.Channel("")
		has := func(words string) bool { return strings.Contains(words, " "+word+" ") }
		for code, words := range wordsOfCurrency() {
			if has(words) {
				currency = code
			}
		}
		switch {
		case currency != "":
		case has(dollarWords):
			isDollar = true
		case has(branchWords):
			channel = engine.Branch
		case has(digitalWords):
			channel = engine.Digital
		case has(cashWords):
			channel = engine.Cash
		case has(transferWords):
			channel = engine.Transfer
		case !has(fillerWords):
			return Target{}, false
		}
		if currency != "" && target.Currency != "" && currency != target.Currency || channel != "" && target.Channel != "" && channel != target.Channel {
			return Target{}, false
		}
		target.Currency, target.Channel = cmp.Or(currency, target.Currency), cmp.Or(channel, target.Channel)
	}
	if isDollar {
		target.Currency = cmp.Or(target.Currency, "USD")
	}
	isOtherDollar := isDollar && target.Currency != "USD" && target.Currency != "CAD"
	return target, target.Currency != "" && !isOtherDollar
}

// targetsOfWords returns the quotes that labels of the dictionary may stand for.
func targetsOfWords() (targets []Target) {
	for currency := range wordsOfCurrency() {
		for _, channel := range []engine.Channel{"", engine.Branch, engine.Digital, engine.Cash, engine.Transfer} {
			targets = append(targets, Target{Currency: currency, Channel: channel})
		}
	}
	return targets
}

package suggest

import (
	"fmt"
	"github.com/tasard/tasard/collectors/values"
	"slices"
	"strconv"
	"strings"

	"github.com/tasard/tasard/engine"
)

// cents are ten-thousandths of a peso.
type cents int64

const pesoCents cents = 10_000

// centsOf converts a decimal with at most four decimals. It returns false for any other text, "" included.
func centsOf(text string) (cents, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if whole == "" || len(fraction) > decimalsMax {
		fraction = strings.TrimRight(fraction, "0")
	}
	if whole == "" || len(fraction) > decimalsMax {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", decimalsMax-len(fraction)), 10, 64)
	return cents(n), err == nil
}

// Distances from a known price, in thousandths of it.
const (
	samePermille = 20 // a price without a word is the known one
	nearPermille = 60 // a price is plausible
	farPermille  = 2 * nearPermille
	unsure       = 10 // the other side may be nearer by so much
)

func permilleBetween(a, b cents) int64 {
	difference := a - b
	if difference < 0 {
		difference = -difference
	}
	return int64(difference * 1000 / max(b, 1))
}

// of returns the known price of a side; ok is false if it is unknown.
func (k *Known) of(side string) (price cents, ok bool) {
	known := k.Buy
	if side == "sell" {
		known = k.Sell
	}
	if known.IsNull() || known.Compare(engine.Decimal{}) <= 0 {
		return 0, false
	}
	return centsOf(known.String())
}

func (f *finder) knownOf(currency string) (k Known, ok bool) {
	i := slices.IndexFunc(f.known, func(k Known) bool { return k.Currency == currency })
	if i < 0 {
		return Known{}, false
	}
	return f.known[i], true
}

func (f *finder) isKnown(value cents) bool {
	return slices.ContainsFunc(f.known, func(k Known) bool {
		for _, side := range []string{"buy", "sell"} {
			if price, ok := k.of(side); ok && permilleBetween(value, price) <= samePermille {
				return true
			}
		}
		return false
	})
}

// nearKnown drops prices that are far from the known one, if another one is near and none is between.
func (f *finder) nearKnown(key quoteSide, spots []*spot) []*spot {
	k, _ := f.knownOf(key.currency)
	price, ok := k.of(key.side)
	if !ok {
		return spots
	}
	var near []*spot
	for _, s := range spots {
		switch distance := permilleBetween(s.value, price); {
		case distance <= nearPermille:
			near = append(near, s)
		case distance < farPermille:
			return spots
		}
	}
	if len(near) == 0 {
		return spots
	}
	return near
}

// farFromKnown says that a price is too far from the known one, or nearer to the known price of the other side.
func (f *finder) farFromKnown(key quoteSide, s *spot) string {
	k, _ := f.knownOf(key.currency)
	own, ok := k.of(key.side)
	if !ok {
		return ""
	}
	distance := permilleBetween(s.value, own)
	other, hasOther := k.of(key.other().side)
	if distance > nearPermille || hasOther && distance > unsure && distance > 2*permilleBetween(s.value, other)+2 {
		return fmt.Sprintf("%s %s is not near the known price", key.side, s.price)
	}
	return ""
}

// useKnown supplies the word that a price lacks, unless another price has it by its words.
func (f *finder) useKnown() {
	named := map[quoteSide]bool{}
	for _, s := range f.spots {
		named[quoteSide{s.currency.Meaning, "", s.side.Meaning}] = s.lacks() == 0 || named[quoteSide{s.currency.Meaning, "", s.side.Meaning}]
	}
	for _, s := range f.spots {
		if s.isNoise || s.isUnclear || s.lacks() != 1 {
			continue
		}
		before := *s
		if f.supply(s); named[quoteSide{s.currency.Meaning, "", s.side.Meaning}] {
			*s = before
		}
	}
}

// lacks returns how many words a price lacks.
func (s *spot) lacks() (count int) {
	for _, w := range []values.Word{s.side, s.currency} {
		if w.Meaning == "" {
			count++
		}
	}
	return count
}

// supply gives a price the side and the currency of the only known price that it is near to.
func (f *finder) supply(s *spot) {
	var fits []quoteSide
	for _, k := range f.known {
		if s.currency.Meaning != "" && s.currency.Meaning != k.Currency {
			continue
		}
		distances := map[string]int64{}
		for _, side := range []string{"buy", "sell"} {
			if price, ok := k.of(side); ok {
				distances[side] = permilleBetween(s.value, price)
			}
		}
		for side, distance := range distances {
			other, hasOther := distances[quoteSide{side: side}.other().side]
			isNearer := s.side.Meaning == side || !hasOther || 2*distance < other
			if (s.side.Meaning == "" || s.side.Meaning == side) && distance <= samePermille && isNearer {
				fits = append(fits, quoteSide{k.Currency, "", side})
			}
		}
	}
	if len(fits) != 1 || s.currency.Meaning == "" && len(f.known) > 1 {
		return // of several currencies each may have the price of another
	}
	if s.side.Meaning == "" {
		s.side = values.Word{Topic: values.AboutSide, Meaning: fits[0].side}
		s.reasons = append(s.reasons, "side by the known price")
	}
	if s.currency.Meaning == "" {
		s.currency = values.Word{Topic: values.AboutCurrency, Meaning: fits[0].currency}
		s.reasons = append(s.reasons, "currency by the known price")
	}
}

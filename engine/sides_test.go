package engine

import (
	"testing"
	"time"
)

// The central bank gave one value for both sides in the years of the fixed rate; since then two that are equal are an error.
func TestX14_ReferencesMayHaveSidesThatDiffer(t *testing.T) {
	f := newFixture(t)
	f.book = NewBook("USD", DefaultCatalogue().WithSources(Source{ID: "official", Priority: 100, Lifetime: LifetimeDefault, Bounds: []Bound{
		{Currency: "USD", Until: dayOf("2002-12-31"), Lowest: decimalFrom("10")}, {Currency: "USD", SidesDiffer: true},
	}}), DefaultRules())
	dated := func(buy, sell, date string) Observation {
		o := reference(buy, sell)
		o.EffectiveDate = dayOf(date)
		return o
	}
	f.accept("official", dated("58.9", "59.3", DateOf(noon).String()))
	f.wait(time.Hour)
	f.refuse(SameSides, "official", dated("59.3", "59.30", DateOf(noon).String()))
	f.accept("official", dated("59.0", "", DateOf(noon).String()))
	f.book = NewBook("USD", f.book.catalogue, DefaultRules())
	f.accept("official", dated("12.5", "12.5", "1995-03-01"))
}

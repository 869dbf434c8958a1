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

// A page that shows one side in the place of the other, and nothing in its own, has no crossed sides to be known by.
func TestX18_ALoneSideInTheOthersPlace(t *testing.T) {
	f := newFixture(t)
	f.accept("bdi-site", usd("bdi", "57.00", "59.00"))
	f.wait(time.Hour)
	f.refuse(Jump, "bdi-site", usd("bdi", "59.00", ""))
	f.refuse(Jump, "bdi-site", usd("bdi", "58.01", ""))
	f.wait(time.Hour)
	f.refuse(Jump, "bdi-site", usd("bdi", "", "57.99"))
	f.wait(time.Hour)
	f.accept("bdi-site", usd("bdi", "", "58.00"))
	f.wait(time.Hour)
	f.refuse(Jump, "bdi-site", usd("bdi", "58.00", ""))
	f.wait(time.Hour)
	f.accept("bdi-site", usd("bdi", "57.99", "")) // no own side to measure by, and too few quotes for a median
	f.wait(7*24*time.Hour + time.Second)          // the memory of X6
	f.accept("bdi-site", usd("bdi", "", "57.50"))
}

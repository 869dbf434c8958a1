package engine

import (
	"testing"
	"time"
)

func TestX2_OfEqualSourcesTheOneCheckedLastIsPublished(t *testing.T) {
	f := newFixture(t)
	f.accept("b-source", usd("bhd", "57.00", "60.00"))
	f.accept("a-source", usd("bhd", "57.10", "60.10"))
	if got := f.rate("bhd"); got.SourceID != "a-source" {
		t.Errorf("published %s; checked at one moment, the smaller id is", got.SourceID)
	}
	f.wait(time.Hour)
	f.accept("b-source", usd("bhd", "57.00", "60.00"))
	if got := f.rate("bhd"); got.SourceID != "b-source" {
		t.Errorf("published %s; the other one was checked last", got.SourceID)
	}
}

func TestX6_TheLastGoodValueIsAMeasureForSevenDays(t *testing.T) {
	f := newFixture(t)
	f.accept("a", usd("bhd", "57", "60"))
	f.wait(7 * 24 * time.Hour)
	f.refuse(Jump, "a", usd("bhd", "64", "67"))
	f.wait(time.Second)
	f.accept("a", usd("bhd", "64.5", "68"))
}

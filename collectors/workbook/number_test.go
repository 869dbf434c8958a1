package workbook

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// isPlainDecimal says whether a text is digits with at most one point between them and a sign.
func isPlainDecimal(text string) bool {
	whole, fraction, pointed := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	return whole != "" && (!pointed || fraction != "") && strings.Trim(whole+fraction, "0123456789") == "" &&
		(len(whole) == 1 || whole[0] != '0')
}

// TestNumber_ReadsBack holds for every double: the text is plain, reads back to the same double, and no shorter one does.
func TestNumber_ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Float64().Draw(t, "value")
		text, ok := doubleText(math.Float64bits(value))
		if !ok || !isPlainDecimal(text) {
			t.Fatalf("%v gave %q, %t", value, text, ok)
		}
		if back, err := strconv.ParseFloat(text, 64); err != nil || back != value {
			t.Fatalf("%v gave %q, which reads back as %v", value, text, back)
		}
		noisy := strconv.FormatFloat(value, 'e', 16, 64) // the 17 digits that a workbook may have
		if again, ok := numberText(noisy); !ok || again != text {
			t.Fatalf("%s gave %q, want %q", noisy, again, text)
		}
	})
}

// TestNumber_RK compares every RK number with exact fractions.
func TestNumber_RK(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rk := rapid.Uint32().Draw(t, "rk")
		want := new(big.Rat)
		if rk&rkInteger != 0 {
			want.SetInt64(int64(int32(rk) >> 2))
		} else {
			value := math.Float64frombits(uint64(rk&^3) << 32)
			if math.IsNaN(value) || math.IsInf(value, 0) {
				if text, ok := rkText(rk); ok {
					t.Fatalf("%#x gave %q", rk, text)
				}
				return
			}
			text, _ := doubleText(math.Float64bits(value)) // what the cell would hold without the hundredths
			want.SetString(text)
		}
		if rk&rkHundredths != 0 {
			want.Quo(want, big.NewRat(100, 1))
		}
		text, ok := rkText(rk)
		if got, read := new(big.Rat).SetString(text); !ok || !read || got.Cmp(want) != 0 || !isPlainDecimal(text) {
			t.Fatalf("%#x gave %q, want %s", rk, text, want.RatString())
		}
	})
}

func TestNumber_Refused(t *testing.T) {
	for _, text := range []string{"", "NaN", "Inf", "-infinity", "0x1p4", "1_000", "58,95", "1e400", "5 8", "e", "--1", "٥"} {
		if got, ok := numberText(text); ok {
			t.Errorf("%q gave %q", text, got)
		}
	}
}

func TestPlace(t *testing.T) {
	for name, want := range map[string][2]int{"A1": {0, 0}, "Z9": {8, 25}, "AA10": {9, 26}, "IV65536": {65535, 255}, "XFD1048576": {1048575, 16383}} {
		row, column, ok := cellPlace(name)
		if !ok || row != want[0] || column != want[1] || cellName(row, column) != name {
			t.Errorf("%s is %d, %d, %t, and back %s", name, row, column, ok, cellName(row, column))
		}
	}
	for _, name := range []string{"", "A", "1", "a1", "A0", "A01", "A-1", "A+1", "AAAA1", "A12345678", "A1 ", "$A$1", "Ñ1"} {
		if row, column, ok := cellPlace(name); ok {
			t.Errorf("%q is %d, %d", name, row, column)
		}
	}
}

func TestOpen_LooksLike(t *testing.T) {
	for body, says := range map[string]string{
		"":                             "empty",
		" \r\n":                        "empty",
		"\xEF\xBB\xBF<!DOCTYPE HTML>":  "HTML",
		"\n <html lang=es>":            "HTML",
		"<?xml version='1.0'?><html>":  "HTML",
		"<?xml version='1.0'?><x/>":    "XML",
		"<table><tr>":                  "HTML",
		"%PDF-1.7":                     "PDF",
		"{\"a\":1}":                    "JSON",
		"[]":                           "JSON",
		"{\\rtf1":                      "RTF",
		"\x1f\x8b\x08":                 "gzip",
		"\x89PNG\r\n":                  "picture",
		"\xff\xd8\xff\xe0":             "picture",
		"\x09\x08\x10\x00":             "bare stream",
		"\x09\x00\x04\x00":             "Excel 2",
		"Año;Mes;Día":                  "text",
		strings.Repeat(" a", 400) + "": "text",
		"\x00\x01\x02":                 "nothing that is known",
	} {
		if _, err := Open([]byte(body)); !errors.Is(err, ErrNoWorkbook) || !strings.Contains(err.Error(), says) {
			t.Errorf("%.20q: got %v, want %q in it", body, err, says)
		}
	}
	if err := readAll(make([]byte, bodyBytesMax+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a huge file: %v", err)
	}
}

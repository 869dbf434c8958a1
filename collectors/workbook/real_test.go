package workbook

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The workbooks of the central bank, as it published them in 2020. They are no part of the repository.
const (
	realFolder = "../../../shared/data"
	realDollar = "bcrd__TASA_DOLAR_REFERENCIA_MC__2020-12-07.xls"
	realOthers = "bcrd__TASAS_CONVERTIBLES_OTRAS_MONEDAS__2020-03-27.xls"
)

// readReal reads a real file, or skips the test where there is none.
func readReal(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(realFolder, name))
	if os.IsNotExist(err) {
		t.Skipf("%s is not here", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// mustOpen opens a workbook that is good.
func mustOpen(t testing.TB, body []byte) *Book {
	t.Helper()
	book, err := Open(body)
	if err != nil {
		t.Fatal(err)
	}
	return book
}

// mustRows reads a sheet that is good.
func mustRows(t testing.TB, book *Book, sheet string) [][]string {
	t.Helper()
	rows, err := book.Rows(sheet)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestReal_Dollar(t *testing.T) {
	book := mustOpen(t, readReal(t, realDollar))
	sheets := []string{"Diaria", "PromMensual", "PromTrimestral", "PromAnual", "FPMensual", "FPTrimestral", "FPAnual"}
	if got := book.Sheets(); !slices.Equal(got, sheets) {
		t.Fatalf("sheets %q, want %q", got, sheets)
	}
	rows := mustRows(t, book, "Diaria")
	wantRows(t, rows, map[int][]string{
		1:    {"Tasas de Cambio del dólar de Referencia del Mercado Spot"},
		2:    nil,
		3:    {"Año", "Mes", "Día", "Compra", "Venta"},
		4:    {"1991", "Ene", "2", "11.2", "11.5"},
		7520: {"2020", "Dic", "7", "58.098", "58.3397"},
	})
	if len(rows) != 7520 {
		t.Errorf("%d rows, want 7520", len(rows))
	}
	if got := countDecimals(t, rows, 3, 5); got != 15034 {
		t.Errorf("%d rates, want 15034", got)
	}
}

func TestReal_OtherCurrencies(t *testing.T) {
	book := mustOpen(t, readReal(t, realOthers))
	want := []string{"Diario", "Mensual", "Trimestral", "Anual"} //nolint:misspell // Spanish
	if got := book.Sheets(); !slices.Equal(got, want) {
		t.Fatalf("sheets %q, want %q", got, want)
	}
	rows := mustRows(t, book, "Diario")
	wantRows(t, rows, map[int][]string{
		1: {"Tasas de Cambio Convertibles de otras monedas"},
		3: {"Año", "Mes", "Día", "REAL BRASILENO", "DOLAR CANADIENSE", "FRANCO SUIZO", "YUAN CHINO", "DERECHO ESPECIAL DE GIRO", "CORONA DANESA",
			"EURO", "LIBRA ESTERLINA", "YEN JAPONES", "CORONA NORUEGA", "LIBRA ESCOCESA", "CORONA SUECA", "DOLAR ESTADOUNIDENSE",
			"BOLIVAR FUERTE VENEZOLANO"},
		4075: {"2020", "Mar", "27", "10.5291", "38.4175", "55.9156", "7.5863", "73.4843", "8.0036", "59.0646", "65.7367", "0.4964", "5.1674",
			"65.7367", "5.4039", "53.8076", "5.3875"},
	})
	if len(rows) != 4075 {
		t.Errorf("%d rows, want 4075", len(rows))
	}
	if got := countDecimals(t, rows, 3, 17); got != 49462 {
		t.Errorf("%d rates, want 49462", got)
	}
}

// TestReal_Observations compares with the rates that another program read, by way of the bank's own service.
func TestReal_Observations(t *testing.T) {
	rows := mustRows(t, mustOpen(t, readReal(t, realDollar)), "Diaria")
	months := []string{"", "Ene", "Feb", "Mar", "Abr", "May", "Jun", "Jul", "Ago", "Sep", "Oct", "Nov", "Dic"}
	byDay := map[string][]string{}
	for _, row := range rows[3:] {
		month, day := slices.Index(months, row[1]), row[2]
		byDay[row[0]+"-"+twoDigits(month)+"-"+strings.Repeat("0", 2-len(day))+day] = row[3:]
	}
	records, err := csv.NewReader(bytes.NewReader(readReal(t, "observations.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	const institution, buy, sell, effective = 1, 5, 6, 8
	compared := 0
	for _, record := range records {
		if record[institution] != "bcrd" || record[effective] > "2020-12-07" {
			continue
		}
		if want := []string{record[buy], record[sell]}; !slices.Equal(byDay[record[effective]], want) {
			t.Errorf("%s: %q, observed %q", record[effective], byDay[record[effective]], want)
		}
		compared++
	}
	if compared < 400 {
		t.Errorf("only %d days compared", compared)
	}
	t.Logf("%d days are the same", compared)
}

func twoDigits(n int) string { return string([]byte{byte('0' + n/10), byte('0' + n%10)}) }

// wantRows compares some rows by their number in the sheet.
func wantRows(t *testing.T, rows [][]string, want map[int][]string) {
	t.Helper()
	for number, cells := range want {
		if number > len(rows) {
			t.Errorf("row %d is not there; the last is %d", number, len(rows))
		} else if !slices.Equal(rows[number-1], cells) {
			t.Errorf("row %d\n got %q\nwant %q", number, rows[number-1], cells)
		}
	}
}

// countDecimals counts the cells of the columns from first to before last, below the headings, and wants each of them to be
// plain decimal text.
func countDecimals(t *testing.T, rows [][]string, first, last int) int {
	t.Helper()
	count := 0
	for i, row := range rows[3:] {
		for j := first; j < min(last, len(row)); j++ {
			if row[j] == "" {
				continue
			}
			count++
			whole, fraction, _ := strings.Cut(row[j], ".")
			if whole == "" || strings.Trim(whole+fraction, "0123456789") != "" {
				t.Errorf("cell %s is %q", cellName(i+3, j), row[j])
			}
		}
	}
	return count
}

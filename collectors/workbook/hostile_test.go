package workbook

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
)

const (
	hostileMemory = 16 << 20               // of all that is allocated while a bomb is refused, garbage too
	hostileTime   = 100 * time.Millisecond // of one reading, on average
	hostileHang   = 5 * time.Second        // of one reading, however busy the machine is
)

// contents reads a workbook wholly.
func contents(body []byte) (map[string][][]string, error) {
	book, err := Open(body)
	if err != nil {
		return nil, err
	}
	all := map[string][][]string{}
	for _, sheet := range book.Sheets() {
		if all[sheet], err = book.Rows(sheet); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// watch measures many readings.
type watch struct {
	count          int
	total, longest time.Duration
}

func (w *watch) read(t *testing.T, body []byte) (map[string][][]string, error) {
	t.Helper()
	start := time.Now() //nolint:forbidigo // a hang is measured on the real clock
	all, err := contents(body)
	took := time.Since(start) //nolint:forbidigo // as above
	w.count, w.total, w.longest = w.count+1, w.total+took, max(w.longest, took)
	if took > hostileHang {
		t.Errorf("one reading took %v", took)
	}
	if err != nil && !isOurs(err) {
		t.Errorf("an error of no kind: %v", err)
	}
	return all, err
}

func (w *watch) report(t *testing.T) {
	t.Helper()
	mean := w.total / time.Duration(max(1, w.count))
	t.Logf("%d readings, %v on average, %v at most", w.count, mean, w.longest)
	if mean > hostileTime {
		t.Errorf("a reading took %v on average, the most is %v", mean, hostileTime)
	}
}

func isOurs(err error) bool {
	return errors.Is(err, ErrNoWorkbook) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrTooLarge)
}

func dollarXLSX(t testing.TB) []byte {
	return excelFile(t, func(f *excelize.File) { fillTable(t, f, "Diaria", dollarTable()) })
}

// bigXLS is a workbook of several sectors and texts that go on in a CONTINUE.
func bigXLS() []byte {
	var cells, texts [][]byte
	for i := range 400 {
		texts = append(texts, wideText("Compra"), narrowText("Día"))
		cells = append(cells, biffCell(recordLabelSST, i, 0, le32(i)), biffCell(recordNumber, i, 1, double(58.95)),
			biffRecord(recordMulRK, le16(i), le16(2), le16(0), le32(2), le16(0), le32(3), le16(3)))
	}
	table := slices.Concat(le32(len(texts)), le32(len(texts)), slices.Concat(texts...))
	cut := 8 + 200*len(slices.Concat(texts[:2]...))
	return xls(slices.Concat(biffRecord(recordStrings, table[:cut]), biffRecord(recordContinue, table[cut:])), cells...)
}

// TestHostile_Truncation cuts workbooks at every 512th byte: what is read of the rest is an error or the whole.
func TestHostile_Truncation(t *testing.T) {
	bodies := map[string][]byte{"small XLS": dollarXLS(), "XLS": bigXLS(), "XLSX": dollarXLSX(t)}
	for name, file := range map[string]string{"dollar": realDollar, "others": realOthers} {
		t.Run(name+" is here", func(t *testing.T) { bodies[name] = readReal(t, file) })
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			whole, err := contents(body)
			if err != nil {
				t.Fatal(err)
			}
			var w watch
			for at := 0; at < len(body); at += 512 {
				if all, err := w.read(t, body[:at]); err == nil && !reflect.DeepEqual(all, whole) {
					t.Errorf("cut at %d of %d it reads as another workbook", at, len(body))
				}
			}
			w.report(t)
		})
	}
}

// TestHostile_BitFlips turns single bits around. XLSX has checksums: no such workbook may read as another one.
func TestHostile_BitFlips(t *testing.T) {
	small := xlsx(t, row(1, `<c r="A1" t="s"><v>0</v></c>`)+row(2, `<c r="A2"><v>58.95</v></c><c r="B2"><v>59.33</v></c>`), "Compra")
	tests := []struct {
		name  string
		body  []byte
		flips int
	}{{"small XLS", dollarXLS(), 10_000}, {"XLS", bigXLS(), 500}, {"small XLSX", small, 9_000},
		{"XLSX", dollarXLSX(t), 1_000}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(4, 1))
			whole, err := contents(tt.body)
			if err != nil {
				t.Fatal(err)
			}
			var w watch
			read := 0
			flips := tt.flips
			if raceDetector {
				flips /= 20
			}
			for range flips {
				at, bit := chance.IntN(len(tt.body)), byte(1)<<chance.IntN(8)
				flipped := slices.Clone(tt.body)
				flipped[at] ^= bit
				all, err := w.read(t, flipped)
				if err == nil {
					read++
				}
				if bytes.HasPrefix(tt.body, []byte(zipSignature)) && err == nil && !reflect.DeepEqual(all, whole) {
					t.Errorf("byte %d with bit %#x turned reads as another workbook", at, bit)
				}
			}
			t.Logf("%d of them could still be read", read)
			w.report(t)
		})
	}
}

// allocated is how many bytes something allocates in all.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// packed is a package whose sheet is unpacked from a stream of its own and has the sizes that the header says.
func packed(t testing.TB, header zip.FileHeader, stream []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, p := range with(parts(""), "xl/worksheets/sheet1.xml", "") {
		file, err := w.Create(p.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(file, p.text); err != nil {
			t.Fatal(err)
		}
	}
	header.Name, header.Method, header.CompressedSize64 = "xl/worksheets/sheet1.xml", zip.Deflate, uint64(len(stream))
	file, err := w.CreateRaw(&header)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(stream); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// deflated is a sheet with so many bytes of filling in front of its cells.
func deflated(t testing.TB, filling string, times int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	block := strings.Repeat(filling, 1024)
	_, _ = io.WriteString(w, "<worksheet><sheetData>")
	for range times / 1024 {
		_, _ = io.WriteString(w, block)
	}
	_, _ = io.WriteString(w, "</sheetData></worksheet>")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestHostile_Bombs holds the memory of every bomb to the same limit, whatever it is refused for.
func TestHostile_Bombs(t *testing.T) {
	const gigabyte = 1 << 30
	blanks := deflated(t, " ", 64<<20)
	var many []xlsxPart
	for i := range 5 * partsMax {
		many = append(many, xlsxPart{"xl/worksheets/" + cellName(i, i%26) + ".xml", ""})
	}
	var sparse strings.Builder
	for i := range 5000 {
		sparse.WriteString(row(i+1, `<c r="`+cellName(i, columnsMax-1)+`"><v>1</v></c>`))
	}
	tests := []struct {
		name string
		body []byte
		want error
	}{
		{"64 MiB in 64 KiB", packed(t, zip.FileHeader{UncompressedSize64: 64 << 20}, blanks), ErrTooLarge},
		{"the same, said to be 2 MiB", packed(t, zip.FileHeader{UncompressedSize64: 2 << 20}, blanks[:8<<10]), ErrTooLarge},
		{"16 MiB of empty rows", packed(t, zip.FileHeader{UncompressedSize64: 1_500_160*11 + 45}, deflated(t, "<row></row>", 1_500_160)), ErrTooLarge},
		{"the same, said to be 1,000 bytes", packed(t, zip.FileHeader{UncompressedSize64: 1000}, blanks), ErrDamaged},
		{"said to be 1 GiB", packed(t, zip.FileHeader{UncompressedSize64: gigabyte}, deflated(t, " ", 1024)), ErrTooLarge},
		{"thousands of parts", pack(t, many...), ErrTooLarge},
		{"a comment of 900 KiB", xlsx(t, "<!--"+strings.Repeat("<>", 450<<10)+"-->"), ErrTooLarge},
		{"a tag of 900 KiB", xlsx(t, "<a b='"+strings.Repeat("x", 900<<10)+"'/>"), ErrTooLarge},
		{"200,000 elements in each other", xlsx(t, strings.Repeat("<a>", 200_000)), ErrDamaged},
		{"rows with only their last cell", xlsx(t, sparse.String()), ErrTooLarge},
		{"a cell in the last row of all", xlsx(t, row(1048576, `<c><v>1</v></c>`)), ErrTooLarge},
		{"a count of texts that lies", pack(t, with(parts(row(1, `<c t="s"><v>4</v></c>`)), "xl/sharedStrings.xml", `<sst count="4294967295" uniqueCount="4294967295"/>`)...), ErrDamaged},
		{"entities in entities", pack(t, with(parts(""), "xl/sharedStrings.xml",
			`<!DOCTYPE s [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><sst><si><t>&b;&b;</t></si></sst>`)...), ErrDamaged},
		{"dimensions that lie", pack(t, with(parts(""), "xl/worksheets/sheet1.xml", `<worksheet><dimension ref="A1:XFD1048576"/></worksheet>`)...), nil},
		{"XLS: dimensions that lie", xls(nil, biffRecord(0x0200, le32(0), le32(-1), le16(0), le16(-1), le16(0))), nil},
		{"XLS: texts that lie", xls(biffRecord(recordStrings, le32(-1), le32(stringsMax), make([]byte, 9000))), ErrDamaged},
		{"XLS: many texts", xls(biffRecord(recordStrings, le32(-1), le32(stringsMax+1))), ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			used := allocated(func() { err = readAll(tt.body) })
			if !isKind(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if used > hostileMemory {
				t.Errorf("%d bytes allocated, the most is %d", used, hostileMemory)
			}
		})
	}
}

// TestHostile_Elements is a part with more elements than any table, though nothing else is wrong with it.
func TestHostile_Elements(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine goes through millions of bytes: without the race detector")
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, p := range with(parts(""), "xl/worksheets/sheet1.xml", "<worksheet>"+strings.Repeat("<a/>", elementsMax)+"</worksheet>") {
		file, err := w.CreateHeader(&zip.FileHeader{Name: p.name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(file, p.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, out.Bytes(), ErrTooLarge, "elements")
}

// TestControl_Memory shows that the measure sees a bomb that goes off.
func TestControl_Memory(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine goes through millions of bytes: without the race detector")
	}
	blanks := deflated(t, " ", 64<<20)
	used := allocated(func() {
		if _, err := io.ReadAll(flate.NewReader(bytes.NewReader(blanks))); err != nil {
			t.Error(err)
		}
	})
	if used < 4*hostileMemory {
		t.Errorf("64 MiB were unpacked, and %d bytes allocated", used)
	}
}

// TestHostile_Containers are OLE containers that lead the library astray.
func TestHostile_Containers(t *testing.T) {
	const tableAt, tablesAt, directoryAt, miniAt, miniCountAt, moreAt, moreCountAt = 76, 44, 48, 60, 64, 68, 72
	good := bigXLS()
	directory := 512 * (1 + int(binary.LittleEndian.Uint32(good[directoryAt:])))
	table := 512 * (1 + int(binary.LittleEndian.Uint32(good[tableAt:])))
	small := ole(oleStream{"Workbook", []byte("small enough for the mini stream")})
	smallTable := 512 * (1 + int(binary.LittleEndian.Uint32(small[tableAt:])))
	miniTable := int(binary.LittleEndian.Uint32(small[miniAt:]))
	folders := bytes.Buffer{}
	for i := range 4000 { // each one in the one before
		folders.Write(oleEntry("A", 1, i+1, noEntry, 0, 0))
	}
	deep := ole(oleStream{"Workbook", folders.Bytes()}) // its directory is moved to the stream
	more := slices.Clone(good[:512])                    // and 500 sectors, each of which names the next one
	for i := range 500 {
		more = append(more, slices.Concat(make([]byte, 508), le32(i+1))...)
	}
	change := func(body []byte, values map[int]int) []byte {
		body = slices.Clone(body)
		for at, value := range values {
			copy(body[at:], le32(value))
		}
		return body
	}
	tests := []struct {
		name string
		body []byte
		want error
	}{
		{"tables whose size overflows", change(good, map[int]int{tablesAt: 0x7fffffff, moreAt: 0, moreCountAt: 0x10204081}), ErrDamaged},
		{"more tables than it can have", change(good, map[int]int{moreAt: 0, moreCountAt: 0x00ffffff}), ErrDamaged},
		{"hundreds of tables of tables", change(more, map[int]int{tablesAt: 0x7fffffff, moreAt: 0, moreCountAt: 400}), ErrTooLarge},
		{"a directory that follows itself", change(good, map[int]int{table + 4*((directory-512)/512): (directory - 512) / 512}), ErrDamaged},
		{"a directory beyond the end", change(good, map[int]int{directoryAt: 0x00ffffff}), ErrDamaged},
		{"an entry that is its own neighbour", change(good, map[int]int{directory + 128 + 68: 1}), ErrDamaged},
		{"an entry that does not exist", change(good, map[int]int{directory + 76: 999}), ErrDamaged},
		{"a stream of 2 GiB", change(good, map[int]int{directory + 128 + 120: 0x7fffffff}), ErrDamaged},
		{"a stream whose first sector follows itself", change(good, map[int]int{table: 0}), ErrDamaged},
		{"a stream that ends early", change(good, map[int]int{table: chainEnds}), ErrDamaged},
		{"a mini table that follows itself", change(small, map[int]int{tablesAt: 60_000, miniCountAt: 60_000,
			smallTable + 4*miniTable: miniTable}), ErrTooLarge},
		{"folders in folders", change(deep, map[int]int{directoryAt: 0}), ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var w watch
			used := allocated(func() {
				if _, err := w.read(t, tt.body); !isKind(err, tt.want) {
					t.Errorf("got %v, want %v", err, tt.want)
				}
			})
			if used > hostileMemory {
				t.Errorf("%d bytes allocated, the most is %d", used, hostileMemory)
			}
			w.report(t)
		})
	}
}

package workbook

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// hostileMemory bounds all that is allocated while a hostile workbook is read, garbage too.
const hostileMemory = 16 << 20

func sweep(sample, whole int) int {
	if os.Getenv("SWEEP") == "whole" {
		return whole
	}
	return sample
}

func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// readHostile reads a workbook wholly, and wants that to take little memory and an error to be of a known kind.
func readHostile(t *testing.T, body []byte) (all map[string][][]string, err error) {
	t.Helper()
	if used := allocated(func() { all, err = contents(body) }); used > hostileMemory {
		t.Errorf("%d bytes allocated, the most is %d", used, hostileMemory)
	}
	if err != nil && !isOurs(err) {
		t.Errorf("an error of no kind: %v", err)
	}
	return all, err
}

func isOurs(err error) bool {
	return errors.Is(err, ErrNotWorkbook) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrTooLarge)
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
	return xls(slices.Concat(biffRecord(recordSST, table[:cut]), biffRecord(recordContinue, table[cut:])), cells...)
}

// TestHostile_Truncation cuts workbooks at every 512th byte: what is read of the rest is an error or the whole.
func TestHostile_Truncation(t *testing.T) {
	bodies := map[string][]byte{"small XLS": dollarXLS(), "XLS": bigXLS(), "XLSX": excelFile(t, dollarTable())}
	for name, file := range map[string]string{"dollar": realDollar, "others": realOthers} {
		t.Run(name+" is here", func(t *testing.T) { bodies[name] = readReal(t, file) })
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			whole, err := contents(body)
			must(t, err)
			pieces := (len(body) + 511) / 512
			step := max(1, pieces/sweep(100, pieces))
			for at := 0; at < len(body); at += 512 * step {
				if all, err := contents(body[:at]); err == nil && !reflect.DeepEqual(all, whole) || err != nil && !isOurs(err) {
					t.Errorf("cut at %d of %d it reads as another workbook: %v", at, len(body), err)
				}
			}
		})
	}
}

// TestHostile_BitFlips turns single bits around. XLSX has checksums: no such workbook may read as another one.
func TestHostile_BitFlips(t *testing.T) {
	small := xlsx(t, row(1, `<c r="A1" t="s"><v>0</v></c>`)+row(2, `<c r="A2"><v>58.95</v></c><c r="B2"><v>59.33</v></c>`), "Compra")
	for _, tt := range []struct {
		name  string
		body  []byte
		flips int
	}{
		{"small XLS", dollarXLS(), sweep(4_000, 10_000)}, {"XLS", bigXLS(), sweep(50, 500)},
		{"small XLSX", small, sweep(500, 9_000)}, {"XLSX", excelFile(t, dollarTable()), sweep(100, 1_000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(4, 1))
			whole, err := contents(tt.body)
			must(t, err)
			for range tt.flips {
				at, bit := chance.IntN(len(tt.body)), byte(1)<<chance.IntN(8)
				flipped := slices.Clone(tt.body)
				flipped[at] ^= bit
				all, err := readHostile(t, flipped)
				if bytes.HasPrefix(tt.body, []byte(zipSignature)) && err == nil && !reflect.DeepEqual(all, whole) {
					t.Errorf("byte %d with bit %#x turned reads as another workbook", at, bit)
				}
			}
		})
	}
}

// packed is a package whose sheet is unpacked from a stream of its own and has the size that the header says.
func packed(t testing.TB, size uint64, stream []byte) []byte {
	t.Helper()
	return pack(t, append(with(parts(""), "xl/worksheets/sheet1.xml", ""), xlsxPart{name: "xl/worksheets/sheet1.xml", raw: stream, size: size})...)
}

// deflated is a sheet with so many bytes of filling in front of its cells.
func deflated(t testing.TB, filling string, times int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	must(t, err)
	block := strings.Repeat(filling, 1024)
	_, _ = io.WriteString(w, "<worksheet><sheetData>")
	for range times / 1024 {
		_, _ = io.WriteString(w, block)
	}
	_, _ = io.WriteString(w, "</sheetData></worksheet>")
	must(t, w.Close())
	return out.Bytes()
}

// TestHostile_Bombs holds the memory of every bomb to the same limit, whatever it is refused for.
func TestHostile_Bombs(t *testing.T) {
	const gigabyte = 1 << 30
	blanks := deflated(t, " ", 64<<20)
	var many []xlsxPart
	for i := range 5 * partsMax {
		many = append(many, xlsxPart{name: "xl/worksheets/" + cellName(i, i%26) + ".xml"})
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
		{"64 MiB in 64 KiB", packed(t, 64<<20, blanks), ErrTooLarge},
		{"the same, said to be 2 MiB", packed(t, 2<<20, blanks[:8<<10]), ErrTooLarge},
		{"16 MiB of empty rows", packed(t, 1_500_160*11+45, deflated(t, "<row></row>", 1_500_160)), ErrTooLarge},
		{"the same, said to be 1,000 bytes", packed(t, 1000, blanks), ErrDamaged},
		{"said to be 1 GiB", packed(t, gigabyte, deflated(t, " ", 1024)), ErrTooLarge},
		{"thousands of parts", pack(t, many...), ErrTooLarge},
		{"a comment of 900 KiB", xlsx(t, "<!--"+strings.Repeat("<>", 450<<10)+"-->"), ErrTooLarge},
		{"a tag of 900 KiB", xlsx(t, "<a b='"+strings.Repeat("x", 900<<10)+"'/>"), ErrTooLarge},
		{"200,000 elements in each other", xlsx(t, strings.Repeat("<a>", 200_000)), ErrDamaged},
		{"rows with only their last cell", xlsx(t, sparse.String()), ErrTooLarge},
		{"a count of texts that lies", pack(t, with(parts(row(1, `<c t="s"><v>4</v></c>`)), "xl/sharedStrings.xml", `<sst count="4294967295" uniqueCount="4294967295"/>`)...), ErrDamaged},
		{"entities in entities", pack(t, with(parts(""), "xl/sharedStrings.xml",
			`<!DOCTYPE s [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><sst><si><t>&b;&b;</t></si></sst>`)...), ErrDamaged},
		{"dimensions that lie", pack(t, with(parts(""), "xl/worksheets/sheet1.xml", `<worksheet><dimension ref="A1:XFD1048576"/></worksheet>`)...), nil},
		{"XLS: dimensions that lie", xls(nil, biffRecord(0x0200, le32(0), le32(-1), le16(0), le16(-1), le16(0))), nil},
		{"XLS: texts that lie", xls(biffRecord(recordSST, le32(-1), le32(sharedStringsMax), make([]byte, 9000))), ErrDamaged},
		{"XLS: many texts", xls(biffRecord(recordSST, le32(-1), le32(sharedStringsMax+1))), ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := readHostile(t, tt.body); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	unpack := func() { _, _ = io.ReadAll(flate.NewReader(bytes.NewReader(blanks))) }
	if used := allocated(unpack); used < 4*hostileMemory {
		t.Errorf("control: a bomb of 64 MiB went off, and only %d bytes were seen", used)
	}
}

// TestHostile_Elements is a part with more elements than any table, though nothing else is wrong with it.
func TestHostile_Elements(t *testing.T) {
	text := []byte("<worksheet>" + strings.Repeat("<a/>", elementsMax) + "</worksheet>")
	const name = "xl/worksheets/sheet1.xml"
	wantRefused(t, pack(t, append(with(parts(""), name, ""), xlsxPart{name: name, raw: text})...), ErrTooLarge, "elements")
}

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
			if _, err := readHostile(t, tt.body); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

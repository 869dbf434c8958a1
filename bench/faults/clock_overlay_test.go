//go:build faults

package faults

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// clockVariable names the file with the offset of a node's wall clock, for programs with skewedTime.
const clockVariable = "FAULTS_CLOCK"

// skewedNow is what is put into time.Now: whole seconds from a page that the test and the node share. The monotonic clock goes on.
const skewedNow = `
var skewPage = mapSkew()

// mapSkew shares the page; without one the clock is the real one.
func mapSkew() *int64 {
	name, found := syscall.Getenv("` + clockVariable + `")
	if !found {
		return new(int64)
	}
	fd, err := syscall.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		panic(err)
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}
`

// skewedTime is time/time.go of the toolchain with a wall clock that can be set, by its path.
func skewedTime(t *testing.T) map[string]string {
	t.Helper()
	output, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(strings.TrimSpace(string(output)), "src", "time", "time.go")
	return map[string]string{path: replaced(t, path,
		"\t_ \"unsafe\" // for go:linkname\n", "\t\"syscall\"\n\t\"unsafe\"\n",
		"func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n",
		skewedNow+"\nfunc Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tsec += *skewPage\n")}
}

// wallClock is the wall clock of nodes that were built with skewedTime.
type wallClock struct {
	file   string
	page   []byte
	offset time.Duration
}

// newWallClock shows the right time until it is set.
func newWallClock(t *testing.T) *wallClock {
	t.Helper()
	w := &wallClock{file: filepath.Join(t.TempDir(), "clock")}
	if err := os.WriteFile(w.file, make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(w.file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if w.page, err = unix.Mmap(int(file.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(w.page) })
	return w
}

// env lets a node go by this clock.
func (w *wallClock) env() []string { return []string{clockVariable + "=" + w.file} }

// step moves it by whole seconds.
func (w *wallClock) step(by time.Duration) {
	w.offset += by
	binary.NativeEndian.PutUint64(w.page, uint64(int64(w.offset/time.Second)))
}

// set makes it show an instant, to the second.
func (w *wallClock) set(at time.Time) { w.step(time.Until(at).Truncate(time.Second) - w.offset) }

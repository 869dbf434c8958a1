package main

import (
	"bufio"
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// unknown stands for what this machine does not tell.
const unknown = "unknown"

// thisMachine describes where the bench runs.
func thisMachine() machine {
	cpu, cores := parseCPU(fileText("/proc/cpuinfo"))
	if cores == 0 {
		cores = runtime.NumCPU()
	}
	kernel := strings.TrimSpace(string(fileText("/proc/sys/kernel/osrelease")))
	if kernel == "" {
		kernel = unknown
	}
	return machine{
		CPU:    cpu,
		Cores:  cores,
		Memory: parseMemory(fileText("/proc/meminfo")),
		Kernel: kernel,
		Go:     runtime.Version(),
	}
}

// fileText is what the file holds, nothing when it can't be read: a report without the name of the CPU is still a report.
func fileText(path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return text
}

// parseCPU reads /proc/cpuinfo. It counts the machine's processors itself: the bench may be bound to one of them, and then the Go
// runtime sees only that one. Kernels of other architectures than x86 give no model name.
func parseCPU(text []byte) (name string, cores int) {
	for line := range fields(text) {
		switch line.key {
		case "processor":
			cores++
		case "model name":
			if name == "" {
				name = strings.Join(strings.Fields(line.value), " ")
			}
		}
	}
	if name == "" {
		name = unknown
	}
	return name, cores
}

// parseMemory reads the bytes of memory from /proc/meminfo ("MemTotal:  8129936 kB"), 0 when it does not say.
func parseMemory(text []byte) int64 {
	const kilo, most = 1024, 1 << 50
	for line := range fields(text) {
		if line.key != "MemTotal" {
			continue
		}
		number, unit, _ := strings.Cut(line.value, " ")
		if kilobytes, err := strconv.ParseInt(number, 10, 64); err == nil && unit == "kB" && 0 < kilobytes && kilobytes < most/kilo {
			return kilobytes * kilo
		}
		return 0
	}
	return 0
}

// field is a line "key : value" of a file under /proc.
type field struct{ key, value string }

func fields(text []byte) func(yield func(field) bool) {
	return func(yield func(field) bool) {
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 1<<20) // the list of a CPU's features is one line
		for lines.Scan() {
			key, value, found := strings.Cut(lines.Text(), ":")
			if found && !yield(field{strings.TrimSpace(key), strings.TrimSpace(value)}) {
				return
			}
		}
	}
}

// treeState is the commit that is measured, and whether the tree holds changes beside it, as go build writes them into the program
// in a checkout. Without that (go run, go test) the commit is unknown.
func treeState() (commit string, changed bool) {
	if info, ok := debug.ReadBuildInfo(); ok {
		return stampedState(info.Settings)
	}
	return unknown, false
}

// stampedState reads what the build wrote.
func stampedState(settings []debug.BuildSetting) (commit string, changed bool) {
	commit = unknown
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			changed = s.Value == "true"
		}
	}
	return commit, changed
}

//go:build !linux

package main

import (
	"errors"
	"os"
	"syscall"
	"time"
)

var errOnlyLinux = errors.New("the bench pins processes to cores and reads their CPU time as Linux offers it; run it there")

func pinned(core int, do func() error) error {
	if core < 0 {
		return do()
	}
	return errOnlyLinux
}

func attributes(*command) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func killGroup(process *os.Process) { _ = process.Kill() }

func cpuOf([]int) (time.Duration, error) { return 0, errOnlyLinux }

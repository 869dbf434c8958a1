package main

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller waits for many sockets at once, on the thread that asks: Go's own poller would put a goroutine and two switches between
// an answer and the clock.
type poller struct {
	fd     int
	events []unix.EpollEvent
	// coarse tells that the kernel is older than epoll_pwait2 (5.11) and waits in whole milliseconds.
	coarse bool
}

func newPoller(sockets int) (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create an epoll: %w", err)
	}
	return &poller{fd: fd, events: make([]unix.EpollEvent, sockets)}, nil
}

func (p *poller) close() { _ = unix.Close(p.fd) }

// add waits for a socket from now on; its events carry the number. Closing the socket ends it.
func (p *poller) add(socket, number int, interest uint32) error {
	return p.control(unix.EPOLL_CTL_ADD, socket, number, interest)
}

// change waits for something else of a socket.
func (p *poller) change(socket, number int, interest uint32) error {
	return p.control(unix.EPOLL_CTL_MOD, socket, number, interest)
}

func (p *poller) control(operation, socket, number int, interest uint32) error {
	event := unix.EpollEvent{Events: interest, Fd: int32(number)}
	if err := unix.EpollCtl(p.fd, operation, socket, &event); err != nil {
		return fmt.Errorf("wait for a connection: %w", err)
	}
	return nil
}

// wait returns what has happened, at the latest after the given time, to the nanosecond where the kernel can. Not above zero, it
// only looks. A signal (the runtime sends itself some) ends it early.
func (p *poller) wait(longest time.Duration) ([]unix.EpollEvent, error) {
	var n int
	var err error
	switch {
	case longest <= 0:
		n, err = unix.EpollWait(p.fd, p.events, 0)
	case p.coarse:
		n, err = unix.EpollWait(p.fd, p.events, int(longest/time.Millisecond)) // rounded down: too early is looked at again
	default:
		n, err = p.waitExactly(longest)
	}
	switch {
	case err == nil:
		return p.events[:n], nil
	case errors.Is(err, unix.EINTR):
		return nil, nil
	case errors.Is(err, unix.ENOSYS) && !p.coarse:
		p.coarse = true
		return nil, nil
	}
	return nil, fmt.Errorf("wait for connections: %w", err)
}

// waitExactly is epoll_pwait2, for which golang.org/x/sys has a number but no function.
func (p *poller) waitExactly(longest time.Duration) (int, error) {
	limit := struct{ seconds, nanoseconds int64 }{int64(longest / time.Second), int64(longest % time.Second)} // 64 bits on each machine
	n, _, code := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)),
		uintptr(unsafe.Pointer(&limit)), 0, 0)
	if code != 0 {
		return 0, code
	}
	return int(n), nil
}

// punctual makes the thread's waits end within a microsecond of their time where the kernel would allow itself 50, and returns what
// undoes it. What can't be set is left as it is: the end of a wait is spun in any case.
func punctual() (undo func()) {
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return func() {}
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) }
}

// threadTime is the CPU time that the thread has used so far.
func threadTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

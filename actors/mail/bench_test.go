package mail

import (
	"fmt"
	"net"
	"testing"
)

// BenchmarkSend is what a caller pays: the letter is put into the queue, in place of an older one.
func BenchmarkSend(b *testing.B) {
	m, err := Open(Config{Addr: "127.0.0.1:1", TLS: Off, From: email(b, "no-reply@tasard.example"), Clock: clock, Random: seeded(1), Dial: noServer})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close(b.Context()) })
	letter := letterTo(b, "ana@example.do", testCode)
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Send(letter); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDelivery is one letter of many that are due together, over loopback without TLS, until the server has it.
func BenchmarkDelivery(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &catcher{arrived: make(chan caught, 100)}
	server.serve(b, listener)
	m, err := Open(Config{Addr: listener.Addr().String(), TLS: Off, From: email(b, "no-reply@tasard.example"), Clock: clock, Random: seeded(1)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close(b.Context()) })
	n := 0
	for b.Loop() {
		if n++; n > 50 {
			<-server.arrived
		}
		if err := m.Send(letterTo(b, fmt.Sprintf("ana%d@example.do", n), testCode)); err != nil {
			b.Fatal(err)
		}
	}
	for range min(n, 50) {
		<-server.arrived
	}
}
